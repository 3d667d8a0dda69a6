#!/bin/bash
# install.sh: installs the packages of the distribution (Debian, Ubuntu) that
# the build needs and that are missing.
set -euo pipefail

packages=(
  # the build
  bazel-bootstrap g++ python3 git
  # libraries
  libprotozero-dev libgoogle-glog-dev libgflags-dev libdnnl-dev libhwy-dev
  nlohmann-json3-dev libzip-dev zlib1g-dev libicu-dev libsentencepiece-dev
  libprotobuf-dev protobuf-compiler libonnx-dev
  # ranks of MPI (framework/comm); without them, their plug-in isn't built
  libopenmpi-dev openmpi-bin
  # the Python package and its tests
  python3-dev python3-numpy python3-venv python3-mypy pybind11-dev libdlpack-dev
  # tests and benchmarks
  libgtest-dev libgmock-dev libjemalloc-dev
  # the tests of what is installed (docs/install.md), by other builds
  cmake make pkgconf
)
# The release of clang-format that tests/format requires; without it, that test
# is skipped. Debian 12's clang-format has this release; Ubuntu has a package for
# each release.
format_major=14
formatters=("clang-format-$format_major" clang-format)

is_installed() {
  # The whole status, since "not-installed" and "half-installed" end the same way.
  [[ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]
}

is_available() {
  [[ -n "$(apt-cache madison "$1" 2>/dev/null)" ]]
}

# Whether a package's version ("1:14.0-55.7~deb12u1") is of that release.
is_of_format_major() {
  [[ "$1" =~ ^([0-9]+:)?$format_major[.-] ]]
}

formatter_is_installed() {
  is_installed "$1" && is_of_format_major "$(dpkg-query -W -f '${Version}' "$1")"
}

formatter_is_available() {
  # The version that apt-get would install.
  is_of_format_major "$(LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: //p')"
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "no apt-get here. Install by the means of your system: ${packages[*]}"
fi

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
has_formatter=0
can_get_formatter=0
for formatter in "${formatters[@]}"; do
  if formatter_is_installed "$formatter"; then has_formatter=1; fi
  if formatter_is_available "$formatter"; then can_get_formatter=1; fi
done
# Only the formatter may be missing. That isn't worth an update of the package
# lists: nothing is done if the present lists don't have it either.
if ((${#missing[@]} == 0 && (has_formatter || !can_get_formatter))); then
  echo "install.sh: all packages are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "not root, and no sudo. As root: apt-get install ${missing[*]} ${formatters[0]}"
  as_root=(sudo)
fi
apt=(env DEBIAN_FRONTEND=noninteractive apt-get)

echo "install.sh: reading the package lists"
if ! "${as_root[@]}" "${apt[@]}" update -q </dev/null; then
  # The lists of an earlier update may be enough.
  echo "install.sh: apt-get update failed; going on with the package lists at hand" >&2
fi

unknown=()
for package in "${missing[@]}"; do
  is_available "$package" || unknown+=("$package")
done
if ((${#unknown[@]})); then
  fail "this distribution has no package: ${unknown[*]} (Debian 12 and Ubuntu 24.04 have; \
on Ubuntu they are in universe)"
fi

if ((!has_formatter)); then
  for formatter in "${formatters[@]}"; do
    if formatter_is_available "$formatter"; then
      missing+=("$formatter")
      break
    fi
  done
fi

if ((${#missing[@]} == 0)); then exit 0; fi
echo "install.sh: installing ${missing[*]}"
"${as_root[@]}" "${apt[@]}" install -q -y --no-install-recommends "${missing[@]}" </dev/null ||
  fail "apt-get install failed for: ${missing[*]}"

# A running Bazel server remembers that it didn't find the libraries.
cd "$(dirname "$0")/.."
"${BAZEL:-bazel}" shutdown </dev/null || true
