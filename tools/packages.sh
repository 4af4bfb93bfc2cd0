# Sourced by tools/demo and tools/test: installs Debian packages that are missing.
#
# install_packages NAME...   Says what it will install; needs root, or sudo.

build_packages="g++ cmake ninja-build pkg-config nlohmann-json3-dev libcli11-dev libpcre2-dev
  libutf8proc-dev libfmt-dev libgtest-dev libgmock-dev"

install_packages() {
  local missing=() name as_root=()
  for name in "$@"; do
    if [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null)" != "ii " ]; then
      missing+=("$name")
    fi
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "All needed packages are installed."
    return 0
  fi
  echo "Installing from Debian: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "Not root, and there is no sudo. As root, run:"
      echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
      return 1
    fi
    as_root=(sudo)
  fi
  local log
  log=$(mktemp)
  if "${as_root[@]}" apt-get update >"$log" 2>&1 </dev/null &&
     "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes \
       --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null; then
    rm -f "$log"
  else
    tail -n 20 "$log"
    echo "apt-get failed; its whole output is in $log"
    return 1
  fi
}

# Ninja and ccache where they are there; a build folder keeps the generator it was made with.
use_build_tools() {
  if command -v ninja >/dev/null; then
    export CMAKE_GENERATOR=Ninja
  fi
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
}
