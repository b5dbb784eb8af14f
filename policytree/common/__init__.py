"""Tools that every package uses.

callers.py       where a warning belongs: at the line outside of the package that made the call
calls.py         both orders of arguments (EconML's and scikit-learn's), and clear errors for calls that Python or
                 scikit-learn would refuse
docstrings.py    docstrings that share entries: an argument is described once, and read in full where it is taken
executors.py     tasks on external executors (anything with ``submit``, as in ``concurrent.futures``); data are sent
                 once
file_locks.py    locks between processes, which the system frees when their holder ends
lazy.py          packages whose names are imported on first use, so that each name costs only its own imports
memory.py        free memory, as far as the system states it
nested_parameters.py  estimators among the arguments of an estimator
own_thread.py    work in a thread without signal handlers, and Ctrl-C at any bytecode of the waiting thread
progress.py      live progress of searches and of jobs with several stages, on a terminal; plain lines, or nothing,
                 elsewhere
safe_text.py     names from data as safe text: nothing steers a terminal, reverses a line or breaks a page
shared_arguments.py  arguments that many functions take, described once
typing.py        type names for users' arguments; values that do not fit are refused at run time in one sentence
validation.py    input validation for all packages: columns become plain arrays and labels codes, or one sentence
                 says why not
"""
