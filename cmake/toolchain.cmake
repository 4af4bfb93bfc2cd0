# Compiler settings shared by every target: language level, warnings, sanitizers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

if(NOT CMAKE_BUILD_TYPE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(tidekv_flags INTERFACE)
set_target_properties(tidekv_flags PROPERTIES EXPORT_NAME flags)
# Contraction is off everywhere: a*b+c means two roundings, std::fma or an intrinsic means one.
target_compile_options(tidekv_flags INTERFACE $<BUILD_INTERFACE:-ffp-contract=off>)
target_compile_features(tidekv_flags INTERFACE cxx_std_20)
target_compile_options(tidekv_flags INTERFACE
  $<BUILD_INTERFACE:-Wall -Wextra -Wpedantic -Wconversion -Wshadow>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 at -O3 sees overlap in every "literal" + string (GCC bug 105651).
  target_compile_options(tidekv_flags INTERFACE $<BUILD_INTERFACE:-Wno-restrict>)
endif()
if(TIDEKV_WERROR)
  target_compile_options(tidekv_flags INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()

if(TIDEKV_SANITIZE)
  add_compile_options(-fsanitize=${TIDEKV_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TIDEKV_SANITIZE})
  if(TIDEKV_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
