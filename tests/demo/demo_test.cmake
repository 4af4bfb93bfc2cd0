# Runs tools/demo on what is built, with an apt-get that fails: a test installs nothing.
file(REMOVE_RECURSE ${WORK})
foreach(program apt-get sudo)
  file(WRITE ${WORK}/${program} "#!/bin/sh\necho ${program} $* was called >&2\nexit 1\n")
  file(CHMOD ${WORK}/${program} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(ENV{PATH} "${WORK}:$ENV{PATH}")

# demo(EXIT_CODE ARGUMENT...): runs it; sets `output`.
function(demo exit_code)
  execute_process(COMMAND ${SOURCE_DIR}/tools/demo ${ARGN}
                  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
  if(NOT code EQUAL exit_code)
    message(FATAL_ERROR "tools/demo ${ARGN} ended with ${code}, not ${exit_code}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect regex)
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "expected a match of '${regex}' in:\n${output}")
  endif()
endfunction()

demo(0)
expect("All needed packages are installed")
expect("The prompt .seed 1.")
expect("\n +tidekv-snap +snapkv +full\n")
expect("\n +right +right +right\n")
expect("\ntokens kept per layer +256 +256 +8[0-9][0-9][0-9]\n")
foreach(row "peak memory, MiB" "  weights" "  hidden bridge" "  full kv" "cache after prefill, MiB"
            "peak of the process, MiB" "time to first token, s" "time to the whole answer, s")
  expect("\n${row} +[0-9]+\\.[0-9][0-9] +[0-9]+\\.[0-9][0-9] +[0-9]+\\.[0-9][0-9]\n")
endforeach()
