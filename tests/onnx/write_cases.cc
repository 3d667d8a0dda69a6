// Exports the op of each case of the operator tests, for a check by ONNX Runtime
// (run_exported.py):
//
//   write_cases --out=DIR [--op=softmax] [--opset=17] [--unknown_dims]
//
// DIR/<op>.<case>.<dtype>.onnx, and beside it .in.npz and .out.npz with the inputs and what Skiff
// computes. DIR/refused.txt lists the cases that have no form in ONNX, with the reasons.
#include <gflags/gflags.h>

#include <cstdio>
#include <string>

#include "framework/base/error.h"
#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/onnx/exporters.h"
#include "framework/op/registry.h"
#include "tests/harness/all_cases.h"
#include "tests/onnx/case_models.h"

DEFINE_string(out, "", "folder to write to; made if it isn't there");
DEFINE_string(op, "", "op type; empty: all");
DEFINE_int32(opset, 17, "the opset of the files");
DEFINE_bool(unknown_dims, false, "whether the programs know no dims of the inputs");

namespace skiff::onnx_tests {
namespace {

class CaseFiles {
 public:
  void Write(const harness::OpCase& op_case, DType dtype) {
    const std::string name = StrCat(op_case.type, ".", op_case.name, ".", dtype);
    try {
      const CaseModel model = MakeCaseModel(op_case, dtype, FLAGS_unknown_dims);
      const ExportedCase exported = ExportCase(model, {.opset = FLAGS_opset});
      if (!exported.refusal.empty()) refused_ += StrCat(name, ": ", exported.refusal, "\n");
      if (exported.bytes.empty()) return;
      WriteFiles(name, model, exported);
      ++written_;
    } catch (const Error& error) {
      refused_ += StrCat(name, ": (no program) ", error.what(), "\n");
    }
  }

  void Finish() const {
    AtomicWriteFile(JoinPath(FLAGS_out, "refused.txt"), refused_);
    std::printf("%d cases written\n", written_);
  }

 private:
  static void WriteFiles(const std::string& name, const CaseModel& model,
                         const ExportedCase& exported) {
    const auto path = [&](const char* ending) { return JoinPath(FLAGS_out, name + ending); };
    TensorMap inputs(model.feeds.begin(), model.feeds.end());
    TensorMap outputs;
    for (const std::string& fetch : exported.fetches) outputs[fetch] = model.outputs.at(fetch);
    WriteNpz(path(".in.npz"), inputs);
    WriteNpz(path(".out.npz"), outputs);
    AtomicWriteFile(path(".onnx"), exported.bytes);
  }

  std::string refused_;
  int written_ = 0;
};

bool IsChosen(const harness::OpCase& op_case) {
  const bool is_named = FLAGS_op.empty() || op_case.type == FLAGS_op;
  const bool has_form = onnx_export::ExporterTable::All().Find(op_case.type) != nullptr;
  return is_named && has_form && !op_case.benchmark_only && HasPlainInputs(op_case);
}

void WriteAll() {
  CreateDirectories(FLAGS_out);
  CaseFiles files;
  for (const harness::OpCase& op_case : harness::AllCases()) {
    if (!IsChosen(op_case)) continue;
    for (const DType dtype : op_case.dtypes) files.Write(op_case, dtype);
  }
  files.Finish();
}

int Write() {
  SKIFF_ENFORCE(!FLAGS_out.empty(), kInvalidArgument, "--out is missing, expected a folder");
  WriteAll();
  return 0;
}

}  // namespace
}  // namespace skiff::onnx_tests

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "write_cases --out=DIR [--op=TYPE] [--opset=N] [--unknown_dims]",
       .summary = "Exports the op of each case of the operator tests as an ONNX model.",
       .run = skiff::onnx_tests::Write});
}
