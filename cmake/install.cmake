# cmake --install: the public headers, the modules' libraries, the program, and a CMake package.
#
# Consumers see one target, tidekv::tidekv. The modules are exported because it links them; their
# own headers are not installed.
add_library(tidekv_public INTERFACE)
set_target_properties(tidekv_public PROPERTIES EXPORT_NAME tidekv VERIFY_INTERFACE_HEADER_SETS ON)
file(GLOB tidekv_public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tidekv/*.h)
target_sources(tidekv_public INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include
               FILES ${tidekv_public_headers})
target_link_libraries(tidekv_public INTERFACE tidekv_engine)
add_library(tidekv::tidekv ALIAS tidekv_public)

get_property(tidekv_modules GLOBAL PROPERTY TIDEKV_MODULES)
install(TARGETS tidekv_public tidekv_flags ${tidekv_modules} EXPORT tidekv_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tidekv RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(tidekv_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tidekv)
install(EXPORT tidekv_targets NAMESPACE tidekv:: FILE tidekvTargets.cmake
        DESTINATION ${tidekv_package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tidekvConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/tidekvConfig.cmake
                              INSTALL_DESTINATION ${tidekv_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tidekvConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tidekvConfig.cmake
              ${PROJECT_BINARY_DIR}/tidekvConfigVersion.cmake DESTINATION ${tidekv_package_dir})
