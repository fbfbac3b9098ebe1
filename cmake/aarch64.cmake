# Cross-compiles for aarch64 on Debian, and runs what was built under emulation:
#   apt-get install g++-aarch64-linux-gnu qemu-user-static
#   cmake --preset release -B build/aarch64 --toolchain cmake/aarch64.cmake
# The libraries that tools/install-deps.sh lists are needed for arm64 too: installed (dpkg
# --add-architecture arm64), or unpacked (dpkg -x) into a folder that SLIP_AARCH64_ROOT names.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# The processor that is emulated has every extension. Programs find their libc in the cross
# compiler's folder.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu)
set(SLIP_AARCH64_ROOT "" CACHE PATH "Where arm64 packages were unpacked, if not installed")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLIP_AARCH64_ROOT)
if(SLIP_AARCH64_ROOT)
  list(PREPEND CMAKE_PREFIX_PATH ${SLIP_AARCH64_ROOT}/usr)
  set(CMAKE_CXX_FLAGS_INIT "-isystem ${SLIP_AARCH64_ROOT}/usr/include/aarch64-linux-gnu")
endif()
