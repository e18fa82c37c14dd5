# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What setup, quickstart, check and test share. To be sourced, from bash.
#
#   RIGEL_DEPS         where Kokkos and, if need be, a CUDA toolkit are kept (default: ~/.cache/rigel)
#   RIGEL_CUDA_ARCH    80, 86, 89, 90, 100 or 120: what a CUDA build is for (default: 90 on such a GPU, else 80, whose PTX runs on
#                      newer ones)
#   Kokkos_ROOT        an installed Kokkos to use instead of building one

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=${RIGEL_DEPS:-$HOME/.cache/rigel}
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
compiler=clang++-22
hip=

# What Kokkos calls the architectures that have a preset.
declare -A kokkos_arch=([80]=AMPERE80 [86]=AMPERE86 [89]=ADA89 [90]=HOPPER90 [100]=BLACKWELL100 [120]=BLACKWELL120)
# The same of AMD's that scripts/check_hip compiles for.
declare -A kokkos_hip_arch=([gfx90a]=AMD_GFX90A [gfx942]=AMD_GFX942)

say() { printf 'rigel: %s\n' "$*"; }
die() {
  printf 'rigel: error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf 'rigel:   %s\n' "$line" >&2; done
  exit 1
}

# step <what> <log> <what to do if it fails> <command>…: says what is done, keeps the output in a log, and shows its end
# when the command fails.
step() {
  local what=$1 log=$deps/logs/$2.log advice=$3 begin=$SECONDS
  shift 3
  mkdir -p "$deps/logs"
  say "$what"
  if ! "$@" > "$log" 2>&1 < /dev/null; then
    tail -n 40 "$log" >&2
    die "failed: $what" "the whole output is in $log" "$advice"
  fi
  local took=$((SECONDS - begin))
  if ((took >= 5)); then say "  done in $took s"; fi
}

# The compute capability of the first GPU, as in 90; nothing where there is none.
gpu_architecture() {
  command -v nvidia-smi > /dev/null || return 0
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -n 1) || return 0
  capability=${capability//[!0-9]/}
  printf '%s' "$capability"
}

# Sets cuda (0 or 1), aarch64 (0 or 1), arch (as in 90), host_spaces, preset and build from the arguments and the machine.
choose() {
  local gpu usage="usage: ${0##*/} [--cuda | --no-cuda | --aarch64 | --host-spaces \"Serial;Threads\"]"
  gpu=$(gpu_architecture)
  cuda=0
  aarch64=0
  host_spaces=()
  if [[ -n $gpu ]]; then
    if ((gpu >= 80)); then cuda=1; else say "the GPU has compute capability $gpu; Rigel's CUDA side needs 80, so the host is built"; fi
  fi
  while (($#)); do
    case $1 in
      --cuda) cuda=1 aarch64=0 host_spaces=() ;;
      --no-cuda) cuda=0 aarch64=0 host_spaces=() ;;
      --aarch64) cuda=0 aarch64=1 host_spaces=() ;;
      --host-spaces)
        [[ ${2:-} =~ ^(Serial|OpenMP|Threads)(;(Serial|OpenMP|Threads))*$ ]] ||
          die "--host-spaces is '${2:-}'" "expected some of Serial, OpenMP and Threads, with ';' between them"
        cuda=0 aarch64=0
        IFS=';' read -r -a host_spaces <<< "$2"
        shift
        ;;
      -h | --help)
        sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
      *) die "unknown argument: $1" "$usage" ;;
    esac
    shift
  done
  arch=${RIGEL_CUDA_ARCH:-}
  if [[ -z $arch ]]; then
    if [[ $gpu == 90 ]]; then arch=90; else arch=80; fi
  fi
  [[ -n ${kokkos_arch[$arch]:-} ]] || die "RIGEL_CUDA_ARCH is '$arch'" "set it to 80, 86, 89, 90, 100 or 120"
  preset=host
  if ((cuda)); then preset=cuda-sm$arch; elif ((aarch64)); then preset=aarch64; fi
  build=$root/build/$preset
  if ((${#host_spaces[@]})); then
    [[ -z ${Kokkos_ROOT:-} ]] || die "--host-spaces builds a Kokkos of its own, and Kokkos_ROOT names another" "unset Kokkos_ROOT"
    build+=-$(joined "${host_spaces[@],,}")
  elif ((aarch64)); then
    host_spaces=(Serial)
  else
    host_spaces=(Serial OpenMP)
  fi
}

# Sets the same for Kokkos::HIP, compiled and never run: hip is the AMD architecture, as in gfx90a.
choose_hip() {
  [[ -n ${kokkos_hip_arch[${1:-}]:-} ]] || die "--hip is '${1:-}'" "expected gfx90a or gfx942"
  [[ -z ${Kokkos_ROOT:-} ]] || die "--hip builds a Kokkos of its own, and Kokkos_ROOT names another" "unset Kokkos_ROOT"
  cuda=0 aarch64=0
  hip=$1
  host_spaces=(Serial)
  preset=host
  build=$root/build/hip-$hip
}

# The words with '-' between them.
joined() {
  local IFS=-
  printf '%s' "$*"
}

# Where scripts/setup puts its Kokkos: a folder for each compiler, configuration and way of building it.
kokkos_prefix() {
  local variant=${build##*/} key
  if ((cuda)); then variant=sm$arch; fi
  key=$(cat "$root/scripts/setup" "$root/cmake/kokkos_cuda13.hpp" "$root/cmake/kokkos_inject.cmake" \
    <(if ((aarch64)); then cat "$root/cmake/aarch64.cmake"; fi) <("$compiler" --version 2> /dev/null) \
    <(if ((cuda)); then cuda_toolkit; fi) | sha256sum)
  printf '%s' "$deps/kokkos-4.7.00-$variant-${key:0:12}"
}

# Whether a folder holds a CUDA toolkit, 12.0 or newer.
is_toolkit() {
  local version
  [[ -x $1/bin/ptxas && -f $1/nvvm/libdevice/libdevice.10.bc ]] || return 1
  version=$(sed -n 's/^#define CUDART_VERSION *//p' "$1/include/cuda_runtime_api.h" 2> /dev/null) || return 1
  ((version >= 12000))
}

# The CUDA toolkit to use: one that is installed, else the place where scripts/setup lays one out.
cuda_toolkit() {
  local candidate
  for candidate in "${CUDAToolkit_ROOT:-}" "${CUDA_HOME:-}" /usr/local/cuda; do
    if [[ -n $candidate ]] && is_toolkit "$candidate"; then
      printf '%s' "$candidate"
      return
    fi
  done
  printf '%s' "$deps/cuda-13.0"
}

configure() {
  local options=(--preset "$preset" -B "$build" -DKokkos_ROOT="${Kokkos_ROOT:-$(kokkos_prefix)}")
  if ((cuda)); then options+=(-DCUDAToolkit_ROOT="$(cuda_toolkit)"); fi
  cd "$root"
  local name=${build##*/}
  step "configure the preset $preset in build/$name" "configure-$name" \
    "if it is Kokkos that does not fit, unset Kokkos_ROOT; if build/$name is stale, delete it and run this again" \
    cmake "${options[@]}" "$@"
}

# Sets python, the interpreter RIGEL_PYTHON, and environment: a virtual environment with what files of requirements ask for, one for each interpreter
# and set of files.
python_environment() {
  local requirements=("$@") key has_parts sudo=()
  python=${RIGEL_PYTHON:-python3}
  command -v "$python" > /dev/null || die "there is no $python" "install it, or set RIGEL_PYTHON to another interpreter"
  # Headers, and what makes virtual environments: Debian has them in packages of their own.
  has_parts='import ensurepip, os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
  if ! "$python" -c "$has_parts" 2> /dev/null; then
    command -v apt-get > /dev/null || die "$python has no headers or no ensurepip" "install them, or set RIGEL_PYTHON to another interpreter"
    if ((EUID != 0)); then sudo=(sudo); fi
    step "update the list of Debian packages" apt-update "check the network and /etc/apt/sources.list" \
      "${sudo[@]}" apt-get update
    step "install python3-dev and python3-venv" python-apt "the log shows what failed" \
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-dev python3-venv
    "$python" -c "$has_parts" 2> /dev/null || die "$python still has no headers or no ensurepip: those of python3-dev are for another interpreter" \
      "set RIGEL_PYTHON to Debian's python3, or install them for $python"
  fi
  key=$(cat "${requirements[@]}" <("$python" -c 'import sys; print(sys.version, sys.prefix)') | sha256sum)
  environment=$deps/python-${key:0:12}
  if [[ ! -e $environment/complete ]]; then
    rm -rf "$environment"
    step "make a virtual environment in $environment" python-environment "Debian has it in python3-venv; check the network" \
      "$python" -m venv "$environment"
    step "install what ${requirements[*]##*/} ask for" python-packages "check the network: pip has to reach PyPI" \
      "$environment/bin/pip" install --disable-pip-version-check "${requirements[@]/#/--requirement=}"
    touch "$environment/complete"
  fi
}
