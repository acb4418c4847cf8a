"""Write docs/scaling.md from the numbers of the benchmarks: python docs/scaling.py."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
PATH = Path(__file__).with_suffix(".md")

MANY = 100_000_000  # images
WIDTH = 1280  # features of EfficientNet-Lite0
SETS = 64  # of a batch
A_NUMBER_IN_A_LIST = 8 + 32  # bytes in Python: the pointer, and the integer that it points to


def text(results: dict) -> str:
    """The page."""
    made = results["made"]
    growth = results["growth"]
    last = growth[-1]
    rows = {name: [row for row in found if row["threads"] == 1] for name, found in results["rows"].items()}
    extraction, sets = rows["extraction"][0], rows["sets"][0]
    images_a_second = int(extraction["size"].split()[0]) / extraction["ours"]
    step, drawing = sets["ours"], sets["theirs"]
    index = last["index"] / last["images"] * MANY
    order = A_NUMBER_IN_A_LIST * MANY
    return f"""# What a hundred million images would cost

This page is written by `python docs/scaling.py` from the benchmarks in
[benchmarks/README.md](../benchmarks/README.md).
They were measured on {made["processor"]}, without a GPU.
What follows is arithmetic on these numbers, and no such run has been made.

## What was measured

Set anomaly needs three things of its images: features, once; an index by class, in each process; and ten rows of
features for each set.

| images | opening the data set | a batch of {SETS} sets | index in memory |
| ---: | ---: | ---: | ---: |
{"".join(_growth_line(entry) for entry in growth)}
Features lie in a memory-mapped file, of which only what is asked for is read.
Opening sorts the labels by class: its time and the index grow with the number of images.
A batch takes longer where more of its rows lie on pages of the file that were not touched before.
Among ten thousand images there are none after a few batches, among ten million nearly every row is one; it has then
reached its worst, and does not grow further with the number of images.
A step of the published model takes {1e3 * step:.0f} ms on one thread, of which drawing the batch is
{1e3 * drawing:.1f} ms.
One thread extracts {images_a_second:.0f} images a second with EfficientNet-Lite0 at 224 pixels.

## A hundred million images, one pass

| what | cost |
| --- | --- |
| extracting the features, on one core | {_time(MANY / images_a_second)} |
| the file of features, {WIDTH} numbers of 4 bytes an image | {_bytes(MANY * WIDTH * 4)} |
| opening the data set, in each process | {_time(last["opening"] / last["images"] * MANY)}, or a little more |
| the index, in each process | {_bytes(index)} |
| the order of an epoch, in each process | {_bytes(order)}, as PyTorch's `DistributedSampler` makes a list of it |
| one epoch of the published model, on one core | {_time(MANY / SETS * step)} |
| random rows to read in an epoch | {MANY * 10 / 1e9:.0f} thousand million, of {WIDTH * 4 / 1024:.0f} KiB each |

## Where it would break, in this order

1. **Time to extract.** It is by far the largest part on a processor. `course features --shard I/N` cuts it into N
   shares for N machines, which need nothing of each other but a common folder.
   A GPU is what one would use; the course has not been measured on one.
2. **Memory of each process.** Index and order come to {_bytes(index + order)} in each process. On a machine
   with eight GPUs, and so eight processes, that is {_bytes(8 * (index + order))}. The order breaks first:
   a sampler that yields from a tensor would take {_bytes(8 * MANY)} of it. The index could be shared by memory-mapping
   it too.
3. **Reading at random.** A batch reads {SETS * 10} rows from anywhere in a file that no memory holds. Where a read
   takes 0.1 ms and eight are under way at once, that is {SETS * 10 * 0.1 / 8:.0f} ms a batch beside a step of
   {1e3 * step:.0f} ms: workers (`num_workers`) hide it. Where a read takes 5 ms, as over a network, it is
   {SETS * 10 * 5 / 8:.0f} ms, and the features would have to be packed by class, so that the nine companions of a set
   are one read.
4. **Validation.** It looks at every set once. With a hundredth of the images held out, that is
   {MANY // 100:,} sets after each epoch, {_time(MANY / 100 / SETS * drawing)} for drawing them alone.

## More than one device

`devices`, `num_nodes` and `strategy` are parameters of the training functions and reach Lightning's Trainer.
The devices share each batch of the recipe, so that a run has the same steps on any number of them.
A test trains the reverse task with two processes and DDP and finds the loss curve of one; on set anomaly it finds that
the draws of the processes differ and that an evaluation counts each set once.

Several devices pay where a step takes long beside the exchange of its gradients.
The course's own models do not need them: one device trains each in minutes.
"""


def _growth_line(entry: dict) -> str:
    times = f"{entry['opening']:.2g} s | {1e3 * entry['batch']:.2g} ms"
    return f"| {entry['images']:,} | {times} | {_bytes(entry['index'])} |\n"


def _bytes(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


def _time(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


if __name__ == "__main__":
    PATH.write_text(text(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    print(PATH.name)
