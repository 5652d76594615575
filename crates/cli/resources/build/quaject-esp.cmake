# quaject_esp_add(TARGET PROGRAM.esp [MODE mode] [STYLE style] [PREFIX prefix] [OPTIONS option...]) compiles a program in
# ESP to C and adds the C to a target, which finds the header PROGRAM.h. The C is compiled again only if it has changed.

# The policies of this file: DEPFILE with every generator, quoting.
cmake_policy(PUSH)
cmake_policy(VERSION 3.5...3.20)

find_program(QUAJECT_QJ qj HINTS "${quaject_bindir}")

function(quaject_esp_add target program)
  cmake_parse_arguments(PARSE_ARGV 2 esp "" "MODE;STYLE;PREFIX" "OPTIONS")
  if(NOT QUAJECT_QJ)
    message(FATAL_ERROR "quaject_esp_add: there is no `qj`; set QUAJECT_QJ to its path")
  endif()
  if(CMAKE_VERSION VERSION_LESS 3.20)
    message(FATAL_ERROR "quaject_esp_add needs CMake 3.20, which reads dependency files with every generator")
  endif()
  if(DEFINED esp_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "quaject_esp_add: unknown argument `${esp_UNPARSED_ARGUMENTS}`; options of `qj build` follow OPTIONS")
  endif()
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "quaject_esp_add: there is no target `${target}`; call add_executable or add_library first")
  endif()
  get_filename_component(program "${program}" ABSOLUTE)
  get_filename_component(name "${program}" NAME_WLE)
  set(options --emit c)
  foreach(option MODE STYLE PREFIX)
    if(DEFINED esp_${option})
      string(TOLOWER "--${option}" word)
      list(APPEND options "${word}" "${esp_${option}}")
    endif()
  endforeach()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}-esp")
  set(generated "${folder}/${name}.c" "${folder}/${name}.h")
  # The stamp is the output, because qj does not touch C that stays the same.
  set(stamp "${folder}/${name}.stamp")
  set(depfile "${folder}/${name}.d")
  add_custom_command(
    OUTPUT "${stamp}"
    BYPRODUCTS ${generated}
    COMMAND "${QUAJECT_QJ}" build "${program}" ${options} -o "${folder}" --stamp "${stamp}"
            --depfile "${depfile}" --depfile-target "${stamp}" ${esp_OPTIONS}
    DEPENDS "${program}" "${QUAJECT_QJ}"
    DEPFILE "${depfile}"
    COMMENT "Compiling ${name}.esp to C"
    VERBATIM)
  target_sources("${target}" PRIVATE "${stamp}" ${generated})
  target_include_directories("${target}" PRIVATE "${folder}")
endfunction()

cmake_policy(POP)
