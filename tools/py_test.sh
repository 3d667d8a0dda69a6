#!/bin/bash
# py_test.sh TEST.py: runs the unittest cases of a file (see skiff_py_test).
# The distribution's Python by its path: another one that is first on PATH
# would lack the distribution's modules.
set -eu
export PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 tools/py_test_main.py "$@"
