# cmake -DNM=... -DARCHIVE=... -P kernel_symbols.cmake
#
# Fails if an object of the vector kernels defines a weak function: the linker could pick that copy
# for code that must run without their instructions (docs/decisions/0006). Weak data, which
# sanitizers add, is the same in every object.
execute_process(COMMAND ${NM} --defined-only ${ARCHIVE} OUTPUT_VARIABLE symbols
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NM} cannot read ${ARCHIVE}")
endif()
string(REPLACE "\n" ";" lines "${symbols}")
set(object "")
set(num_objects 0)
foreach(line IN LISTS lines)
  if(line MATCHES "^(.*\\.o):$")
    set(object "${CMAKE_MATCH_1}")
    if(object MATCHES "avx(2|512)")
      math(EXPR num_objects "${num_objects} + 1")
    endif()
  elseif(object MATCHES "avx(2|512)" AND line MATCHES "^[0-9a-f]+ [Ww] (.*)$")
    message(SEND_ERROR "${object} defines the weak function ${CMAKE_MATCH_1}")
  endif()
endforeach()
if(NOT num_objects EQUAL 5)
  message(FATAL_ERROR "expected 5 objects of vector kernels in ${ARCHIVE}, found ${num_objects}")
endif()
