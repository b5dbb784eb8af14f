"""``python -m policytree`` and the command ``policytree``: the command line; Ctrl-C ends it from its first moment."""

import sys


def main() -> int:
    """Run the command line; returns its exit code."""
    import os
    import signal

    def leave(*_):
        """Nothing is open yet: end at once, wherever an import stands."""
        os.write(2, b"Interrupted: no file was written.\n")
        os._exit(130)

    try:
        usual = signal.getsignal(signal.SIGINT)
        if usual is signal.default_int_handler:  # not where a shell said to ignore it
            signal.signal(signal.SIGINT, leave)
        from policytree.cli import main as command_line

        signal.signal(signal.SIGINT, usual)
    except KeyboardInterrupt:
        leave()
    code = 130
    try:
        code = command_line()
        if usual is signal.default_int_handler:  # all is done and said: Python's own end may be cut short
            signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    except KeyboardInterrupt:
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
