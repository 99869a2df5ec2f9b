"""Runs a program under a seccomp filter, as containers do: `refuse.py 425,272 PROGRAM ARGUMENT...` answers those
system calls with EPERM and allows all others. See seccomp(2) and the kernel document userspace-api/seccomp_filter."""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD_NUMBER, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1

numbers = [int(number) for number in sys.argv[1].split(",")]
code = [(LOAD_NUMBER, 0, 0, 0)]
for at, number in enumerate(numbers):
    # Equal: over the tests that follow and the allowance, to the refusal.
    code.append((IF_EQUAL, len(numbers) - at, 0, number))
code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filter)))

libc = ctypes.CDLL(None, use_errno=True)
number = ctypes.c_ulong
if libc.prctl(PR_SET_NO_NEW_PRIVS, number(1), number(0), number(0), number(0)) or libc.prctl(
    PR_SET_SECCOMP, number(MODE_FILTER), ctypes.byref(program), number(0), number(0)
):
    sys.exit(f"no seccomp filter here: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[2], sys.argv[2:])
