# What `cmake --install` puts where, and the Debian package and the archive that cpack makes of it:
#   cmake --build --preset release --target slipstream && cd build/release && cpack -G DEB
# Man page and completions are what the built program says about itself.

# A package needs the program, not the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

install(TARGETS slipstream RUNTIME DESTINATION bin)
install(DIRECTORY models/minnow DESTINATION share/slipstream)
install(FILES LICENSE THIRD-PARTY-NOTICES README.md DESTINATION share/doc/slipstream)
install(CODE "
  execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/packaging/make-docs.sh\"
    \"$<TARGET_FILE:slipstream>\" \"${PROJECT_BINARY_DIR}/packaging\" COMMAND_ERROR_IS_FATAL ANY)
")
install(DIRECTORY ${PROJECT_BINARY_DIR}/packaging/share DESTINATION .)
# In a package the unit is where systemd looks for it; install.sh makes its own of these.
install(FILES packaging/slipstream.service DESTINATION lib/systemd/system)
install(FILES packaging/slipstream.service packaging/slipstream-user.service packaging/serve.conf
  DESTINATION share/slipstream)

set(CPACK_PACKAGE_NAME slipstream)
set(CPACK_PACKAGE_VENDOR "the slipstream authors")
set(CPACK_PACKAGE_CONTACT "the slipstream authors <slipstream@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Runs large language models on one machine, straight from their files")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME slipstream-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36)")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/packaging/postinst ${PROJECT_SOURCE_DIR}/packaging/prerm
  ${PROJECT_SOURCE_DIR}/packaging/postrm)
include(CPack)
