# What every target shares: warnings, sanitizers, and the one way to declare a folder.

add_library(slip_options INTERFACE)
target_include_directories(slip_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(slip_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wno-psabi -Werror>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Every such processor can fuse a product and a sum, and g++ then does where it likes. Plain code
  # is to have the bits that it has on x86-64; loops that want fused ones say so.
  target_compile_options(slip_options INTERFACE -ffp-contract=off)
endif()
if(SLIP_SANITIZE)
  # Undefined behaviour is looked for in what is tested: in assertions it would double the time that
  # compiling them takes.
  target_compile_options(slip_options INTERFACE -fsanitize=${SLIP_SANITIZE}
    $<$<BOOL:$<TARGET_PROPERTY:SLIP_ASSERTIONS>>:-fno-sanitize=undefined>
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(slip_options INTERFACE -fsanitize=${SLIP_SANITIZE})
  # g++ 12 then loses sight of what std::regex and FunctionRef initialise.
  target_compile_options(slip_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(SLIP_SANITIZE MATCHES "thread")  # g++ 12 then sees strings end in the middle
    target_compile_options(slip_options INTERFACE -Wno-error)
  endif()
endif()
if(SLIP_FUZZ)
  target_compile_options(slip_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)
find_path(BOOST_JSON_INCLUDE boost/json.hpp REQUIRED)
find_library(BOOST_JSON_LIBRARY NAMES libboost_json.a REQUIRED)
find_library(BOOST_CONTAINER_LIBRARY NAMES libboost_container.a)
find_path(UTF8PROC_INCLUDE utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY NAMES libutf8proc.a REQUIRED)
find_path(OPENSSL_INCLUDE openssl/ssl.h REQUIRED)
find_library(OPENSSL_SSL_LIBRARY NAMES libssl.a REQUIRED)
find_library(OPENSSL_CRYPTO_LIBRARY NAMES libcrypto.a REQUIRED)

# Headers that most files include, read once; every file still names what it uses
# (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows that it does).
set(SLIP_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <filesystem> <functional> <map> <memory>
  <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector> <boost/json.hpp>)
file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cc "")
add_library(slip_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
target_link_libraries(slip_precompiled PRIVATE slip_options)
target_precompile_headers(slip_precompiled PRIVATE ${SLIP_COMMON_HEADERS})

# slip_folder(text base ...): the folder text/ is the library slip_text and may include only from
# the folders named after it (tools/check-includes.sh compares).
function(slip_folder folder)
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc
    ${PROJECT_SOURCE_DIR}/src/${folder}/*.cu)
  add_library(slip_${name} STATIC ${sources})
  target_link_libraries(slip_${name} PUBLIC slip_options)
  if(NOT name MATCHES "kernels_cuda")  # nvcc reads none
    target_precompile_headers(slip_${name} REUSE_FROM slip_precompiled)
  endif()
  foreach(dependency ${ARGN})
    target_link_libraries(slip_${name} PUBLIC slip_${dependency})
  endforeach()
endfunction()
