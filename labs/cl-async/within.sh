#!/bin/sh
# within.sh COMMAND…: runs COMMAND with no more memory than MEMORY (512M), the kernel's for its sockets included: in a control
# group of its own, which is removed afterwards. Where none can be made, with no more address space than that and RESERVED, which is what
# COMMAND maps without using it. Without MEMORY: just COMMAND.
set -eu
[ -n "${MEMORY:-}" ] || exec "$@"
# No server starts in less, however small the scale.
[ "${MEMORY%M}" -ge 64 ] || MEMORY=64M

end() {
    kill "$child" 2>/dev/null || true
}

for limit in memory.max memory.limit_in_bytes; do
    for groups in /sys/fs/cgroup /sys/fs/cgroup/memory; do
        # The root has no limit of its own: whether its children have one is seen in them.
        group=$groups/throng-lab-$$
        mkdir "$group" 2>/dev/null || continue
        if [ -e "$group/$limit" ] && echo "$MEMORY" > "$group/$limit"; then
            echo "within $MEMORY: $group/$limit"
            sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" "$@" &
            child=$!
            trap end TERM INT
            wait "$child" || true
            # Once more, where a signal was what ended the first.
            status=0
            wait "$child" || status=$?
            rmdir "$group" || true
            exit "$status"
        fi
        rmdir "$group"
    done
done
echo "within $MEMORY: no control group could be made: of its address space only"
reserved=${RESERVED:-0M}
exec prlimit --as="$(((${MEMORY%M} + ${reserved%M}) * 1048576))" "$@"
