#include "framework/io/parameter_marks.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/ir/used_names.h"

namespace skiff {

// Running statistics have a writer.
void RestoreParameterMarks(const Program& program) {
  std::vector<Var*> parameters;
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& var : program.block(static_cast<int32_t>(i))->vars()) {
      if (var->is_parameter) return;
      const bool may_be_one =
          var->persistable && var->kind == VarKind::kLoDTensor && IsFloat(var->dtype);
      if (may_be_one) parameters.push_back(var.get());
    }
  }
  const std::set<std::string> read = NamesRead(program);
  const std::set<std::string> written = NamesWritten(program);
  for (Var* var : parameters) {
    var->is_parameter = read.contains(var->name) && !written.contains(var->name);
  }
}

}  // namespace skiff
