# tidekv_module(name [DEPS ...] [LIBS ...] [LABELS ...])
#   One folder of src/: a static library of its *.cc files, and one test program of its *_test.cc.
#   DEPS are other modules, LIBS outside libraries. Every header must compile alone.
function(tidekv_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  file(GLOB headers CONFIGURE_DEPENDS *.h)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  tidekv_library(${name} SOURCES ${sources} HEADERS ${headers} DEPS ${ARG_DEPS} LIBS ${ARG_LIBS})
  if(TIDEKV_BUILD_TESTS AND tests)
    tidekv_test(${name}_test SOURCES ${tests} DEPS ${name} LIBS ${ARG_LIBS} LABELS ${ARG_LABELS})
  endif()
endfunction()

# tidekv_library(name [SOURCES ...] [HEADERS ...] [DEPS ...] [LIBS ...])
#   The library alone, for a folder that holds more than one.
function(tidekv_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS;LIBS" ${ARGN})
  set(target tidekv_${name})
  add_library(${target} STATIC ${ARG_SOURCES} ${ARG_HEADERS})  # headers: a folder may have nothing else
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(${target} PUBLIC tidekv_flags)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PUBLIC tidekv_${dep})
  endforeach()
  foreach(lib IN LISTS ARG_LIBS)
    if(lib STREQUAL "nlohmann_json::nlohmann_json")  # headers only: nothing to link after install
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${lib}>)
    else()
      target_link_libraries(${target} PRIVATE ${lib})
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY TIDEKV_MODULES ${target})

  if(ARG_HEADERS)
    tidekv_verify_headers(${target} ROOT ${PROJECT_SOURCE_DIR}/src HEADERS ${ARG_HEADERS}
                          LIBS ${target} ${ARG_LIBS})
  endif()
endfunction()

# tidekv_verify_headers(name ROOT dir HEADERS ... LIBS ...)
#   Each header, found from ROOT, compiles alone with what LIBS bring: target
#   all_verify_interface_header_sets. The set is of a target of its own: none of them is installed.
function(tidekv_verify_headers name)
  cmake_parse_arguments(ARG "" "ROOT" "HEADERS;LIBS" ${ARGN})
  add_library(${name}_headers INTERFACE)
  set_target_properties(${name}_headers PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(${name}_headers INTERFACE FILE_SET HEADERS BASE_DIRS ${ARG_ROOT} FILES ${ARG_HEADERS})
  target_include_directories(${name}_headers INTERFACE ${ARG_ROOT})
  target_link_libraries(${name}_headers INTERFACE ${ARG_LIBS})
endfunction()

# tidekv_test(target SOURCES ... DEPS modules... [LIBS ...] [LABELS ...])
#   Labels: slow (release only, not under sanitizers), tsan (also under ThreadSanitizer).
function(tidekv_test target)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${target} PRIVATE tidekv_${dep})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gmock_main Threads::Threads)
  target_compile_definitions(${target} PRIVATE
    TIDEKV_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TIDEKV_BINARY_DIR="${CMAKE_BINARY_DIR}")
  if(TIDEKV_SANITIZE)  # the libraries run long, not the tests' own code: g++ takes half the time
    target_compile_options(${target} PRIVATE -O0)
  endif()
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES TIMEOUT 1200)
  if(ARG_LABELS)
    set_tests_properties(${target} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
  foreach(label IN LISTS ARG_LABELS)  # builds the tests of one label: target tests_tsan
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()
