#!/bin/sh
# Clippy as the compiler of the workspace, so that nothing is compiled once more for its sake. Tests are not optimised, even where what
# they test is: most run for milliseconds, and the optimiser takes seconds. Those of net and tcp move and check many bytes themselves;
# those of fleet simulate a thousand agents.
for word; do
    case $word,$CARGO_PKG_NAME in
        --test,net | --test,tcp) ;;
        --test,fleet) set -- "$@" -Copt-level=1 ;;
        --test,*) set -- "$@" -Copt-level=0 ;;
    esac
done
exec clippy-driver "$@"
