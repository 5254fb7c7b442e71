"""The messages of Prometheus remote write 1.0 and their encoding (https://prometheus.io/docs/specs/prw/remote_write_spec/).

The descriptors are built here instead of by a compiler: three messages need no generated file. `EncodedWriteRequest` has the same bytes as the
specification's WriteRequest; its series are encoded beforehand, so that a label, which
is the same in many of them, is encoded once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
Label = tuple[str, str]
_PACKAGE = "prometheus"
_Field = descriptor_pb2.FieldDescriptorProto
# name -> (field, number, type, repeated, message type)
_MESSAGES: dict[str, list[tuple[str, int, Any, bool, str]]] = {
    "Label": [("name", 1, _Field.TYPE_STRING, False, ""), ("value", 2, _Field.TYPE_STRING, False, "")],
    "Sample": [("value", 1, _Field.TYPE_DOUBLE, False, ""), ("timestamp", 2, _Field.TYPE_INT64, False, "")],
    "TimeSeries": [
        ("labels", 1, _Field.TYPE_MESSAGE, True, "Label"),
        ("samples", 2, _Field.TYPE_MESSAGE, True, "Sample"),
    ],
    "EncodedWriteRequest": [("timeseries", 1, _Field.TYPE_BYTES, True, "")],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="remote_write.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated, of in fields:
            label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            described = message.field.add(name=field, number=number, type=kind, label=label)
            if of:
                described.type_name = f".{_PACKAGE}.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    named = {name: pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name in _MESSAGES}
    return {name: message_factory.GetMessageClass(found) for name, found in named.items()}


_CLASSES = _classes()
_Label, _Sample, _TimeSeries, _Request = (
    _CLASSES[name] for name in ("Label", "Sample", "TimeSeries", "EncodedWriteRequest")
)


@lru_cache(maxsize=100_000)
def _encoded_label(name: str, value: str) -> bytes:
    encoded: bytes = _TimeSeries(labels=[_Label(name=name, value=value)]).SerializeToString()
    return encoded


def encode_series(labels: Iterable[Label], points: Iterable[tuple[int, float]]) -> bytes:
    """labels: in the order of their names, as the specification asks. points: (milliseconds since the epoch, value), ascending.

    Encodings of parts of a message, joined, are one of the whole.
    """
    samples: bytes = _TimeSeries(
        samples=[_Sample(value=value, timestamp=moment) for moment, value in points]
    ).SerializeToString()
    return b"".join([*[_encoded_label(name, value) for name, value in labels], samples])


def encode_request(series: Iterable[bytes]) -> bytes:
    """The body of a request: snappy in its block format, as the specification has it."""
    return bytes(cramjam.snappy.compress_raw(_Request(timeseries=list(series)).SerializeToString()))
