// What a training reports, as objects of Python, and objects of Python that it calls.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "framework/training/callback.h"
#include "framework/training/metric.h"
#include "framework/training/training_record.h"
#include "python_stub/binding.h"

namespace skiff::python {

// Returns a dict from the names of metrics to their values.
py::dict ValuesObject(const training::MetricValues& values);
// Returns a dict with the members of a record, without `averaged`.
py::object RecordObject(const training::TrainingRecord& record);

// Returns the callbacks of a training that call the methods of the objects. A ReduceOnPlateau is
// its own callback. Throws a TypeError for an object without a method of a callback, and for an
// object with only one of the methods state and restore.
std::vector<std::shared_ptr<training::Callback>> CallbacksOf(const py::iterable& objects);

}  // namespace skiff::python
