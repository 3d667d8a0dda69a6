// Callbacks of a training.
#include "python_stub/bind_callbacks.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/training/reduce_on_plateau.h"
#include "python_stub/scope_lock.h"

namespace skiff::python {

using training::MetricValues;

py::dict ValuesObject(const MetricValues& values) {
  py::dict object;
  for (const auto& [name, value] : values.entries()) object[py::str(name)] = value;
  return object;
}

py::object RecordObject(const training::TrainingRecord& record) {
  py::dict object;
  object["epoch"] = record.epoch;
  object["step"] = record.step;
  object["seconds"] = record.seconds;
  object["learning_rate"] = record.learning_rate;
  object["samples_per_second"] = record.samples_per_second;
  object["train"] = ValuesObject(record.train);
  object["validation"] = ValuesObject(record.validation);
  return object;
}

namespace {

// What a callback of Python gets. It ends with the call.
class PythonControl {
 public:
  explicit PythonControl(training::TrainingControl* control) : control_(control) {}

  training::TrainingControl& control() const {
    SKIFF_ENFORCE(control_ != nullptr, kFailedPrecondition,
                  "the callback that this belonged to is over");
    return *control_;
  }
  void End() { control_ = nullptr; }

 private:
  training::TrainingControl* control_;
};

// The scope of a running training.
struct TrainingScope {
  std::shared_ptr<PythonControl> control;
  Scope& scope() const { return control->control().scope(); }
};

// Calls those methods of an object that it has. What they raise comes out of Trainer.run.
class PythonCallback final : public training::Callback {
 public:
  explicit PythonCallback(py::object object) : object_(std::move(object)) {}

  void OnStep(const training::StepReport& report, training::TrainingControl* control) override {
    Call(
        "on_step", [&] { return py::cast(report); }, control);
  }
  void OnEvaluation(const training::EvaluationReport& report,
                    training::TrainingControl* control) override {
    Call(
        "on_evaluation", [&] { return py::cast(report); }, control);
  }
  void OnEpoch(const training::TrainingRecord& record,
               training::TrainingControl* control) override {
    Call(
        "on_epoch", [&] { return RecordObject(record); }, control);
  }
  std::map<std::string, std::string> State() const override {
    const py::gil_scoped_acquire gil;
    if (!py::hasattr(object_, "state")) return {};
    return object_.attr("state")().cast<std::map<std::string, std::string>>();
  }
  std::string Name() const override {
    const py::gil_scoped_acquire gil;
    return py::str(py::type::of(object_).attr("__qualname__"));
  }
  void Restore(const std::map<std::string, std::string>& state) override {
    const py::gil_scoped_acquire gil;
    object_.attr("restore")(state);
  }

 private:
  template <class MakeReport>
  void Call(const char* method, const MakeReport& make_report, training::TrainingControl* control) {
    const py::gil_scoped_acquire gil;
    if (!py::hasattr(object_, method)) return;
    const auto given = std::make_shared<PythonControl>(control);
    const struct Ending {
      PythonControl& control;
      ~Ending() { control.End(); }
    } ending{*given};
    object_.attr(method)(make_report(), given);
  }

  py::object object_;
};

void BindReports(py::module_& module) {
  using training::EvaluationReport;
  using training::StepReport;
  py::class_<StepReport>(module, "StepReport", "A step of a training, counted from 1.")
      .def_readonly("epoch", &StepReport::epoch)
      .def_readonly("batch", &StepReport::batch, "Of the epoch.")
      .def_readonly("step", &StepReport::step, "Of the training.")
      .def_readonly("samples", &StepReport::samples)
      .def_readonly("learning_rate", &StepReport::learning_rate)
      .def_property_readonly(
          "metrics", [](const StepReport& self) { return ValuesObject(self.metrics); },
          "The loss and the metrics of this batch, by name.");
  py::class_<EvaluationReport>(module, "EvaluationReport", "An evaluation of an epoch.")
      .def_readonly("epoch", &EvaluationReport::epoch)
      .def_readonly("step", &EvaluationReport::step)
      .def_property_readonly(
          "metrics", [](const EvaluationReport& self) { return ValuesObject(self.metrics); })
      .def_readonly("is_averaged", &EvaluationReport::is_averaged);
}

void BindControl(py::module_& module) {
  py::class_<TrainingScope>(module, "TrainingScope",
                            "The variables of a running training, during a callback.")
      .def(
          "__getitem__",
          [](const TrainingScope& self, const py::object& name) {
            return ArrayOf(CopyToCpu(self.scope().Get(NameOf(name))));
          },
          py::arg("name"), "Returns a copy of a value as an array. Raises NotFoundError.")
      .def(
          "__setitem__",
          [](const TrainingScope& self, const py::object& name, const py::object& value) {
            const Tensor tensor = TensorOf(value, StrCat("scope[\"", NameOf(name), "\"]")).tensor;
            self.scope().Assign(NameOf(name), CopyToCpu(tensor));
          },
          py::arg("name"), py::arg("value"))
      .def("__contains__",
           [](const TrainingScope& self, const py::object& name) {
             return self.scope().Find(NameOf(name)) != nullptr;
           })
      .def("keys", [](const TrainingScope& self) { return self.scope().Names(); });
  py::class_<PythonControl, std::shared_ptr<PythonControl>>(
      module, "TrainingControl", "A running training, as a callback may change it.")
      .def(
          "stop", [](const PythonControl& self) { self.control().Stop(); },
          "Has the training save a checkpoint and end before its next step.")
      .def(
          "set_learning_rate",
          [](const PythonControl& self, double rate) { self.control().SetLearningRate(rate); },
          py::arg("rate"), "Gives a rate of learning_rate.constant another value.")
      .def_property_readonly("scope", [](const std::shared_ptr<PythonControl>& self) {
        return TrainingScope{.control = self};
      });
}

void BindReduceOnPlateau(py::module_& module) {
  py::class_<training::ReduceOnPlateau, std::shared_ptr<training::ReduceOnPlateau>>(
      module, "ReduceOnPlateau",
      "A callback that lowers the learning rate when a metric of the validation stops getting "
      "better, as PyTorch's ReduceLROnPlateau.")
      .def(py::init([](const std::string& metric, bool larger_is_better, double factor,
                       int64_t patience, double threshold, bool is_relative, int64_t cooldown,
                       double min_rate, double epsilon, const py::object& variable) {
             return std::make_shared<training::ReduceOnPlateau>(
                 training::PlateauOptions{.metric = metric,
                                          .larger_is_better = larger_is_better,
                                          .factor = factor,
                                          .patience = patience,
                                          .threshold = threshold,
                                          .is_relative = is_relative,
                                          .cooldown = cooldown,
                                          .min_rate = min_rate,
                                          .epsilon = epsilon,
                                          .variable = NameOf(variable)});
           }),
           py::kw_only(), py::arg("metric") = "loss", py::arg("larger_is_better") = false,
           py::arg("factor") = 0.1, py::arg("patience") = 10, py::arg("threshold") = 1e-4,
           py::arg("is_relative") = true, py::arg("cooldown") = 0, py::arg("min_rate") = 0.0,
           py::arg("epsilon") = 1e-8, py::arg("variable") = "")
      .def(
          "add",
          [](training::ReduceOnPlateau& self, double value, SharedScope& scope) {
            const ScopeLock lock(scope);
            return self.Add(value, &scope.scope);
          },
          py::arg("value"), py::arg("scope"),
          "In a loop of one's own: takes the next value of the metric. Returns whether it lowered "
          "the rate `variable` in the scope.");
}

}  // namespace

std::vector<std::shared_ptr<training::Callback>> CallbacksOf(const py::iterable& objects) {
  std::vector<std::shared_ptr<training::Callback>> callbacks;
  for (const py::handle object : objects) {
    if (py::isinstance<training::ReduceOnPlateau>(object)) {
      callbacks.push_back(object.cast<std::shared_ptr<training::ReduceOnPlateau>>());
    } else {
      const auto has = [&](const char* method) { return py::hasattr(object, method); };
      if (!has("on_step") && !has("on_evaluation") && !has("on_epoch")) {
        throw py::type_error(
            "a callback has none of the methods on_step, on_evaluation and "
            "on_epoch");
      }
      if (has("state") != has("restore")) {
        throw py::type_error(
            "a callback has one of the methods state and restore, expected both "
            "or none");
      }
      callbacks.push_back(
          std::make_shared<PythonCallback>(py::reinterpret_borrow<py::object>(object)));
    }
  }
  return callbacks;
}

void BindCallbacks(py::module_& module) {
  BindReports(module);
  BindControl(module);
  BindReduceOnPlateau(module);
}

}  // namespace skiff::python
