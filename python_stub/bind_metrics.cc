// Metrics of a training.
#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/training/metric.h"
#include "framework/training/streaming_metric.h"
#include "python_stub/binding.h"

namespace skiff::python {
namespace {

using training::Metric;
using training::StreamingMetric;

std::vector<Tensor> TensorsOf(const py::args& values) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    tensors.push_back(DenseTensorOf(values[i], StrCat("values[", i, "]")));
  }
  return tensors;
}

void BindConfusionMatrix(py::module_& module) {
  using training::ClassScore;
  using training::ConfusionMatrix;
  py::class_<ConfusionMatrix, StreamingMetric, std::shared_ptr<ConfusionMatrix>>(
      module, "ConfusionMatrix",
      "How often a sample of one class was taken for one of another. Takes predictions, scores [N, "
      "classes] or classes [N], and labels [N]. `value` is one of accuracy, macro_precision, "
      "macro_recall and macro_f1.")
      .def(py::init([](int64_t classes, const std::string& value) {
             const std::map<std::string, ClassScore> scores = {
                 {"accuracy", ClassScore::kAccuracy},
                 {"macro_precision", ClassScore::kMacroPrecision},
                 {"macro_recall", ClassScore::kMacroRecall},
                 {"macro_f1", ClassScore::kMacroF1}};
             const auto found = scores.find(value);
             SKIFF_ENFORCE(found != scores.end(), kInvalidArgument, "value = \"", value,
                           "\", expected one of accuracy, macro_precision, macro_recall, macro_f1");
             return std::make_shared<ConfusionMatrix>(classes, found->second);
           }),
           py::arg("classes"), py::kw_only(), py::arg("value") = "macro_f1")
      .def_property_readonly("counts",
                             [](const ConfusionMatrix& self) {
                               py::list rows;
                               for (int64_t label = 0; label < self.classes(); ++label) {
                                 py::list row;
                                 for (int64_t c = 0; c < self.classes(); ++c) {
                                   row.append(self.Count(label, c));
                                 }
                                 rows.append(row);
                               }
                               return rows;
                             })
      .def_property_readonly("accuracy", &ConfusionMatrix::Accuracy)
      .def("precision", &ConfusionMatrix::Precision, py::arg("of_class"))
      .def("recall", &ConfusionMatrix::Recall, py::arg("of_class"))
      .def("f1", &ConfusionMatrix::F1, py::arg("of_class"))
      .def("__str__", &ConfusionMatrix::Text);
}

void BindStreamingMetrics(py::module_& module) {
  py::class_<StreamingMetric, std::shared_ptr<StreamingMetric>>(
      module, "StreamingMetric", "A metric of all batches together that is no mean over them.")
      .def("reset", &StreamingMetric::Reset, "Forgets all batches.")
      .def(
          "add", [](StreamingMetric& self, const py::args& values) { self.Add(TensorsOf(values)); },
          "Takes the values of one batch. Raises an Error for what it can't count, and takes "
          "nothing "
          "of the batch then.")
      .def_property_readonly("value", &StreamingMetric::Value,
                             "The metric of all batches; NaN if it isn't defined for them.");
  py::class_<training::TopKAccuracy, StreamingMetric, std::shared_ptr<training::TopKAccuracy>>(
      module, "TopKAccuracy",
      "The share of samples whose label [N] is among the k best of their scores [N, classes]. "
      "Takes scores and labels.")
      .def(py::init<int64_t>(), py::arg("k"));
  BindConfusionMatrix(module);
  py::class_<training::Auc, StreamingMetric, std::shared_ptr<training::Auc>>(
      module, "Auc",
      "The area under the receiver operating characteristic: exact, or with scores in [0, 1] that "
      "are counted in bins. Takes scores of class 1, [N], or of both classes, [N, 2], and labels "
      "[N], 0 or 1.")
      .def(py::init<int64_t>(), py::kw_only(), py::arg("bins") = 0);
  py::class_<training::Perplexity, StreamingMetric, std::shared_ptr<training::Perplexity>>(
      module, "Perplexity",
      "e to the mean cross-entropy of a token. Takes the mean loss of a batch and its number of "
      "tokens.")
      .def(py::init<>());
}

}  // namespace

void BindMetrics(py::module_& module) {
  BindStreamingMetrics(module);
  py::class_<Metric>(module, "Metric",
                     "A number that a program computes in each step, and whose means a training "
                     "reports for each epoch.")
      .def(
          py::init([](const std::string& name, const py::object& variable,
                      const std::string& weight, bool percent, bool larger_is_better,
                      std::shared_ptr<StreamingMetric> streaming, const py::iterable& streamed) {
            return Metric{.name = name,
                          .variable = NameOf(variable),
                          .weight = weight,
                          .percent = percent,
                          .larger_is_better = larger_is_better,
                          .streaming = std::move(streaming),
                          .streamed = NamesOf(streamed)};
          }),
          py::arg("name"), py::arg("variable") = "", py::kw_only(), py::arg("weight") = "",
          py::arg("percent") = false, py::arg("larger_is_better") = false,
          py::arg("streaming") = nullptr, py::arg("streamed") = py::tuple(),
          "streaming, a StreamingMetric of the variables `streamed` of the test program, takes the "
          "place of the variable: it is reported of evaluations only.");
}

}  // namespace skiff::python
