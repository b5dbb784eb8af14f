"""``python -m policytree`` and the command ``policytree``: the command line; Ctrl-C ends it from its first moment."""

import sys


def main() -> int:
    """Run the command line; returns its exit code."""
    import gc
    import os
    import signal

    gc.set_threshold(20_000)  # collections of garbage took a sixth of the import of what a command needs

    usual = signal.getsignal(signal.SIGINT)
    try:
        from policytree.common.lazy import ended_by_ctrl_c

        with ended_by_ctrl_c():
            from policytree.cli import main as command_line
    except KeyboardInterrupt:
        os.write(2, b"Interrupted: no file was written.\n")
        os._exit(130)
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
