"""HdrHistogram's V2 encoding, read from its specification: `decode` gives (value, count), with values in the histogram's unit."""

import base64
import struct
import zlib


def zigzag(data, at):
    """A ZigZag LEB128 number of 64 bits (nine octets at the most), and where the next begins."""
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        if shift == 56:
            value |= octet << shift
            break
        value |= (octet & 127) << shift
        if octet < 128:
            break
        shift += 7
    return (value >> 1) ^ -(value & 1), at


def decode(text):
    """Of base64, compressed or not."""
    data = base64.b64decode(text)
    if struct.unpack_from(">I", data)[0] & ~0xF0 == 0x1C849304:
        data = zlib.decompress(data[8:])
    cookie, length, _, digits, lowest, _, _ = struct.unpack_from(">IIIIQQd", data)
    assert cookie & ~0xF0 == 0x1C849303, hex(cookie)
    unit = lowest.bit_length() - 1
    magnitude = (2 * 10**digits - 1).bit_length()
    half = 1 << (magnitude - 1)
    counts, place, at = [], 0, 40
    while at < 40 + length:
        count, at = zigzag(data, at)
        if count < 0:
            place -= count
            continue
        if count:
            counts.append((value_of(place, half, magnitude, unit), count))
        place += 1
    return counts


def value_of(place, half, magnitude, unit):
    """The lowest value of a bucket."""
    bucket, sub = (place >> (magnitude - 1)) - 1, (place & (half - 1)) + half
    if bucket < 0:
        bucket, sub = 0, sub - half
    return sub << (bucket + unit)
