"""Runs exported models in ONNX Runtime and compares the outputs with Skiff's.

    run_exported.py DIR [--optimize] [--tolerance=1e-5]

DIR has NAME.onnx, NAME.in.npz and NAME.out.npz for each model, as write_cases and write_models
write them, and NAME.run1.in.npz, … of further runs. Each model must also pass onnx.checker. Needs
onnx, onnxruntime and numpy.
"""
import argparse
import itertools
import json
import os
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort


def session_of(path, optimize):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])


def difference(found, expected, tolerance):
    """Returns what differs, or an empty string."""
    if found.dtype != expected.dtype:
        return f'dtype {found.dtype}, expected {expected.dtype}'
    if found.shape != expected.shape:
        return f'shape {found.shape}, expected {expected.shape}'
    if found.dtype.kind != 'f':
        return '' if np.array_equal(found, expected) else 'other values'
    # Sums round by the size of their terms, so the largest number of a tensor counts for all.
    finite = np.abs(expected[np.isfinite(expected)])
    size = max(1.0, float(finite.max()) if finite.size else 1.0)
    if np.allclose(found, expected, rtol=tolerance, atol=tolerance * size, equal_nan=True):
        return ''
    with np.errstate(all='ignore'):
        return f'values differ by up to {np.nanmax(np.abs(found - expected)):.3g}'


def check_run(session, run, tolerance):
    """Returns (kind, message) of a run whose feeds and outputs are in files."""
    feeds = dict(np.load(run + '.in.npz'))
    names = {i.name for i in session.get_inputs()}
    expected = dict(np.load(run + '.out.npz'))
    try:
        outputs = session.run(None, {k: v for k, v in feeds.items() if k in names})
    except Exception as error:
        text = str(error).replace('\n', ' ')
        kind = 'lacks kernel' if 'does not support double' in text else 'refused'
        return kind, text[:300]
    for output, found in zip(session.get_outputs(), outputs):
        message = difference(found, expected[output.name], tolerance)
        if message:
            return 'different', f'{output.name}: {message}'
    return 'same', ''


def check(path, optimize, tolerance):
    """Returns (kind, message): 'same', 'different', 'lacks kernel' or 'refused'."""
    stem = str(path)[: -len('.onnx')]
    try:
        onnx.checker.check_model(onnx.load(str(path)), full_check=True)
    except Exception as error:
        return 'refused', f'checker: {str(error).strip().splitlines()[0][:300]}'
    try:
        session = session_of(path, optimize)
    except Exception as error:
        text = str(error).replace('\n', ' ')
        kind = 'lacks kernel' if 'NOT_IMPLEMENTED' in text else 'refused'
        return kind, text[:300]
    for index in itertools.count():
        run = stem if index == 0 else f'{stem}.run{index}'
        if index > 0 and not os.path.exists(run + '.in.npz'):
            return 'same', ''
        kind, message = check_run(session, run, tolerance)
        if kind != 'same':
            return kind, message


def check_apart(path, optimize, tolerance):
    """check() in a process of its own, since a runtime may abort."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.write(writer, json.dumps(check(path, optimize, tolerance)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, 'rb') as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else ('refused', 'the runtime aborted')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('dir')
    parser.add_argument('--optimize', action='store_true')
    parser.add_argument('--tolerance', type=float, default=1e-5)
    args = parser.parse_args()
    counts = {}
    for path in sorted(pathlib.Path(args.dir).glob('*.onnx')):
        kind, message = check_apart(path, args.optimize, args.tolerance)
        counts[kind] = counts.get(kind, 0) + 1
        if kind != 'same':
            print(f'{kind}: {path.name}: {message}')
    print(', '.join(f'{count} {kind}' for kind, count in sorted(counts.items())))
    return 1 if counts.get('different', 0) + counts.get('refused', 0) > 0 else 0


if __name__ == '__main__':
    sys.exit(main())
