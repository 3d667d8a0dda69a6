"""Writes sets of buffers for `skiff plan_memory` to the standard output.

    write_buffers.py cuts N [--instants=T] [--bytes=H] [--seed=S]    a rectangle of T x H cut into N
    write_buffers.py pinwheels N …      the same, half of the cuts into five pieces that turn
    write_buffers.py wide N             lives of any length: thousands of buffers meet
    write_buffers.py short N            lives of about a hundred instants
    write_buffers.py nested N           a third nests, as activations do; the others are short

Of the first two, the best plan has H bytes.
"""
import argparse
import random


def cut_rectangle(count, instants, size, with_pinwheels, chance):
    pieces = [(0, instants, 0, size)]
    while len(pieces) < count:
        index = chance.choices(range(len(pieces)), [(b - a) * (d - c) for a, b, c, d in pieces])[0]
        a, b, c, d = pieces[index]
        if with_pinwheels and chance.random() < 0.5 and b - a > 2 and d - c > 2 and len(pieces) + 4 <= count:
            x1, x2 = sorted(chance.sample(range(a + 1, b), 2))
            y1, y2 = sorted(chance.sample(range(c + 1, d), 2))
            pieces[index] = (a, x2, c, y1)
            pieces += [(x2, b, c, y2), (x1, b, y2, d), (a, x1, y1, d), (x1, x2, y1, y2)]
        elif chance.random() < 0.5:
            if b - a > 1:
                x = chance.randrange(a + 1, b)
                pieces[index] = (a, x, c, d)
                pieces.append((x, b, c, d))
        elif d - c > 1:
            y = chance.randrange(c + 1, d)
            pieces[index] = (a, b, c, y)
            pieces.append((a, b, y, d))
    chance.shuffle(pieces)
    return [(a, b, d - c) for a, b, c, d in pieces]


def random_buffer(kind, count, chance):
    size = chance.randrange(1 << chance.randrange(1, 24))
    lower = chance.randrange(count)
    if kind == "wide":
        return lower, chance.randrange(lower + 1, count + 1), size
    if kind == "short":
        return lower, lower + 1 + int(chance.expovariate(0.01)), size
    lower //= 2
    if chance.random() < 0.3:
        return lower, count - lower + chance.randrange(20), size
    return lower, lower + 1 + chance.randrange(8), size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["cuts", "pinwheels", "wide", "short", "nested"])
    parser.add_argument("count", type=int)
    parser.add_argument("--instants", type=int, default=1000)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    if arguments.kind in ("cuts", "pinwheels"):
        buffers = cut_rectangle(arguments.count, arguments.instants, arguments.bytes,
                                arguments.kind == "pinwheels", chance)
    else:
        buffers = [random_buffer(arguments.kind, arguments.count, chance) for _ in range(arguments.count)]
    print("id,lower,upper,size")
    for number, (lower, upper, size) in enumerate(buffers):
        print(f"b{number},{lower},{upper},{size}")


if __name__ == "__main__":
    main()
