#include "framework/ir/used_names.h"

#include <utility>
#include <vector>

namespace skiff {
namespace {

template <typename NamesOf>
std::set<std::string> NamesOfOps(const Program& program, const NamesOf& names_of) {
  std::set<std::string> names;
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& op : program.block(static_cast<int32_t>(i))->ops()) {
      for (std::string& name : names_of(*op)) names.insert(std::move(name));
    }
  }
  return names;
}

}  // namespace

std::set<std::string> NamesRead(const Program& program, int32_t roles_left_out) {
  return NamesOfOps(program, [&](const Op& op) {
    const bool is_left_out = (op.role() & roles_left_out) != 0;
    return is_left_out ? std::vector<std::string>() : op.InputNames();
  });
}

std::set<std::string> NamesWritten(const Program& program) {
  return NamesOfOps(program, [](const Op& op) { return op.OutputNames(); });
}

}  // namespace skiff
