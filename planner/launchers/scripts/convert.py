"""Between Hugging Face's format and Megatron's, through Megatron Bridge."""

from __future__ import annotations

import argparse

from megatron.bridge import AutoBridge


def main() -> None:
    parser = argparse.ArgumentParser()
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--import", dest="source", help="model of Hugging Face that Megatron shall start from")
    way.add_argument("--export", dest="like", help="model of Hugging Face that has the shape of the trained one")
    parser.add_argument("--megatron", required=True, help="directory of Megatron's checkpoint")
    parser.add_argument("--output", help="where an exported model goes")
    options = parser.parse_args()
    if options.source:
        AutoBridge.import_ckpt(options.source, options.megatron)
        return
    if not options.output:
        parser.error("--export needs --output")
    AutoBridge.from_hf_pretrained(options.like).export_ckpt(options.megatron, options.output)


if __name__ == "__main__":
    main()
