"""Writes a wheel that carries a binary: wheel.py NAME VERSION PLATFORM ABOUT BINARY FOLDER. The same binary gives the same wheel."""

import base64
import hashlib
import pathlib
import sys
import zipfile

name, version, platform, about, binary, folder = sys.argv[1:]
# As names are escaped in files (PEP 427).
stem = f"{name.replace('-', '_')}-{version}"
info = f"{stem}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {about}
License: MIT OR Apache-2.0
Requires-Python: >=3.7
"""
tags = "".join(f"Tag: py3-none-{tag}\n" for tag in platform.split("."))
files = {
    f"{stem}.data/scripts/throng": (pathlib.Path(binary).read_bytes(), 0o755),
    # `uvx NAME` runs the command of that name.
    f"{stem}.data/scripts/{name}": (b'#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/throng" "$@"\n', 0o755),
    f"{info}/METADATA": (METADATA.encode(), 0o644),
    f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: throng\nRoot-Is-Purelib: false\n{tags}".encode(), 0o644),
}
record = ""
for path, (data, _) in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{path},sha256={digest},{len(data)}\n"
files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
wheel = pathlib.Path(folder) / f"{stem}-py3-none-{platform}.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
    for path, (data, mode) in files.items():
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
