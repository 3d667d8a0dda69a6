// Finds and loads libskiff_mpi.so.
#pragma once

#include "framework/comm/mpi_plugin.h"

namespace skiff {

// Returns the functions of the plug-in: from the file that the environment variable
// SKIFF_MPI_PLUGIN names, or as the dynamic linker finds it, or from where builds and
// installations of Skiff have it.
//
// Throws an Error (kNotFound) that says where it has looked and what to install; throws an Error
// (kFailedPrecondition) if the plug-in is of another version of Skiff.
const MpiPlugin& LoadMpiPlugin();

}  // namespace skiff
