"""Publishes what it is asked to on standard input, as ../driver.ts says, through k8s-sidecar's own function: the directory of its
sources is the first argument, and is gone from the arguments when they are read."""
import json
import os
import sys

sys.path.insert(0, sys.argv.pop(1))
os.environ["LOG_LEVEL"] = "ERROR"
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from helpers import CONTENT_TYPE_BASE64_BINARY, write_data_to_file  # noqa: E402


def publish(order):
    files = {}
    for name in sorted(os.listdir(order["from"])):
        with open(os.path.join(order["from"], name), "rb") as file:
            files[name] = file.read()
    for target in order["targets"]:
        for name, content in files.items():
            write_data_to_file(target, name, content, CONTENT_TYPE_BASE64_BINARY)


for line in sys.stdin:
    try:
        publish(json.loads(line))
        answer = {}
    except Exception as error:
        answer = {"error": repr(error)}
    print(json.dumps(answer), file=answers, flush=True)
