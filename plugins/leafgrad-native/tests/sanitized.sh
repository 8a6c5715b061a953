#!/bin/sh
# The C compiler with sanitizers, for `make sanitizers`. Python runs with them loaded before all else, the compiler does not.
unset LD_PRELOAD
exec cc "$@" -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all
