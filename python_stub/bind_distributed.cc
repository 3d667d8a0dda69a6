// The package's module `distributed`: the ranks of a training.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/gather.h"
#include "framework/comm/launched_ranks.h"
#include "python_stub/binding.h"
#include "python_stub/ranks.h"

namespace skiff::python {
namespace {

void Barrier() {
  Ranks& ranks = Ranks::The();
  const py::gil_scoped_release others_run;
  ranks.Do([&] { GatherBytes(ranks.communicator(), nullptr, 0, nullptr); });
}

py::list AllGather(const py::object& value) {
  const py::module_ pickle = py::module_::import("pickle");
  const std::string own = py::bytes(pickle.attr("dumps")(value, pickle.attr("HIGHEST_PROTOCOL")));
  Ranks& ranks = Ranks::The();
  std::vector<std::string> all;
  {
    const py::gil_scoped_release others_run;
    all = ranks.Do([&] { return GatherTexts(ranks.communicator(), own); });
  }
  py::list values;
  for (const std::string& one : all) values.append(pickle.attr("loads")(py::bytes(one)));
  return values;
}

void BindWorld(py::module_& module) {
  module.def(
      "rank", [] { return Ranks::The().world().rank; },
      "Returns the number of this rank: 0, ..., world_size() - 1.");
  module.def(
      "world_size", [] { return Ranks::The().world().size; }, "Returns how many ranks there are.");
  module.def(
      "local_rank", [] { return Ranks::The().world().local_rank; },
      "Returns the number of this rank among the ranks of its host.");
  module.def(
      "local_size", [] { return Ranks::The().world().local_size; },
      "Returns how many ranks this host has.");
  module.def(
      "host", [] { return Ranks::The().world().host; }, "Returns the name of this host.");
  module.def(
      "is_main", [] { return Ranks::The().world().rank == 0; },
      "Returns whether this is rank 0, which prints and writes files for all.");
}

}  // namespace

void BindDistributed(py::module_& parent) {
  py::module_ module = parent.def_submodule("distributed");
  module.def(
      "init", &Ranks::Start, py::arg("timeout") = LaunchOptions().time_limit,
      "Starts the ranks, which all ranks do, once. Without it, the first use of ranks starts "
      "them. A rank that has waited `timeout` seconds for others, without any progress, "
      "raises an IoError.");
  BindWorld(module);
  module.def("barrier", &Barrier, "Waits until all ranks have called it.");
  module.def(
      "all_gather", &AllGather, py::arg("value"),
      "Returns the values of all ranks, in the order of the ranks: numbers, small arrays, or "
      "whatever pickle takes. All ranks call it.");
  module.def("abort", &Ranks::Abort, py::arg("message"),
             "Prints the message behind the name of this rank, and ends this process and all other "
             "ranks with status 1. An exception that ends Python does the same.");
}

}  // namespace skiff::python
