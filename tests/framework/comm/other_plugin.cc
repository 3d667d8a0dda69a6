// A plug-in for MPI of another version of Skiff.
#include "framework/comm/mpi_plugin.h"

const skiff::MpiPlugin* SkiffMpiPlugin() {
  static const skiff::MpiPlugin plugin = {.version = 0};
  return &plugin;
}
