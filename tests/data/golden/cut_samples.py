#!/usr/bin/env python3
"""Cuts shared/goldens/minnow/samples.safetensors to its first rows: cut_samples.py FROM TO ROWS"""
import json
import struct
import sys

source, target, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = open(source, "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
out_header, out = {}, b""
for name, entry in header.items():
    begin, _ = entry["data_offsets"]
    columns = entry["shape"][1]
    part = body[begin : begin + rows * columns * 2]
    out_header[name] = {"dtype": entry["dtype"], "shape": [rows, columns], "data_offsets": [len(out), len(out) + len(part)]}
    out += part
text = json.dumps(out_header).encode()
text += b" " * (-len(text) % 8)
open(target, "wb").write(struct.pack("<Q", len(text)) + text + out)
