#include "framework/analysis/verifier.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/op_context.h"
#include "framework/op/var_meta.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {
namespace {

class Verifier {
 public:
  Verifier(const OpRegistry& registry, const Program& program, const VerifyOptions& options)
      : registry_(registry),
        program_(program),
        structure_only_(options.structure_only),
        feeds_(options.feeds.begin(), options.feeds.end()) {
    if (options.infer_feeds) InferFeeds();
  }

  std::vector<std::string> Run() {
    for (size_t b = 0; b < program_.block_count(); ++b) {
      for (const auto& var : program_.block(static_cast<int32_t>(b))->vars()) {
        CheckVar(static_cast<int32_t>(b), *var);
      }
    }
    VisitBlock(*program_.root(), {});
    return std::move(messages_);
  }

 private:
  using Names = std::unordered_set<std::string>;
  static constexpr size_t kMaxDepth = 64;

  void InferFeeds() {
    Names written;
    for (size_t b = 0; b < program_.block_count(); ++b) {
      for (const auto& op : program_.block(static_cast<int32_t>(b))->ops()) {
        if (op->type == "feed") continue;
        for (const std::string& name : op->OutputNames()) written.insert(name);
      }
    }
    for (size_t b = 0; b < program_.block_count(); ++b) {
      for (const auto& var : program_.block(static_cast<int32_t>(b))->vars()) {
        if (!written.contains(var->name)) feeds_.insert(var->name);
      }
    }
  }

  // Whether a tensor of these extents can be. Shape rules are asked about such variables only, so
  // that none of them has to guard its sums and products.
  static std::string WhyNoShape(const Var& var) {
    if (var.dims.size() > Shape::kMaxRank) {
      return StrCat("has rank ", var.dims.size(), ", expected at most ", Shape::kMaxRank);
    }
    // Unknown extents count as 1, an empty tensor as one of its other extents.
    std::vector<int64_t> known;
    for (int64_t dim : var.dims) {
      if (dim < -1) return StrCat("has a dim of ", dim, ", expected -1 (unknown) or more");
      if (dim > 0) known.push_back(dim);
    }
    try {
      ByteCount(ElementCount(known), var.dtype);
    } catch (const Error& error) {
      return StrCat("is too large: ", error.what());
    }
    return {};
  }

  void CheckVar(int32_t block, const Var& var) {
    where_ = StrCat("variable \"", var.name, "\" (block ", block, ") of shape [",
                    Join(var.dims, ", "), "]");
    const std::string reason = WhyNoShape(var);
    if (!reason.empty()) {
      Report(reason);
      without_shape_.insert(&var);
    }
    if (var.lod_level < 0) Report("has LoD level ", var.lod_level, ", expected at least 0");
  }

  void VisitBlock(const Block& block, Names written) {
    visited_.insert(block.index());
    path_.push_back(block.index());
    for (size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i];
      where_ = DescribeOp(op, block.index(), i);
      VisitOp(block, op, written);
      VisitSubBlocks(op, written);
      for (const std::string& name : op.OutputNames()) written.insert(name);
    }
    path_.pop_back();
  }

  void VisitOp(const Block& block, const Op& op, const Names& written) {
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr && (op.type == "feed" || op.type == "fetch")) return;
    CheckMark(op, kOpRoleAttr, AttrType::kInt);
    CheckMark(op, kOpNamescopeAttr, AttrType::kString);
    CheckMark(op, kOpRoleVarAttr, AttrType::kStrings);
    try {
      CheckOp(registry_.Get(op.type), op);
    } catch (const Error& error) {
      Report(error.what());
      return;
    }
    bool complete = true;
    for (const std::string& name : op.InputNames()) {
      const Var* var = block.FindVar(name);
      complete = complete && var != nullptr && !without_shape_.contains(var);
      if (var == nullptr) {
        Report("input \"", name, "\" has no variable");
      } else if (!structure_only_ && !var->persistable && !written.contains(name) &&
                 !feeds_.contains(name)) {
        Report("input \"", name, "\" is read before anything writes it");
      }
    }
    std::set<std::string> outputs;
    for (const std::string& name : op.OutputNames()) {
      const Var* var = block.FindVar(name);
      if (var == nullptr) Report("output \"", name, "\" has no variable");
      complete = complete && var != nullptr && !without_shape_.contains(var);
      if (!outputs.insert(name).second) Report("output \"", name, "\" is written twice by the op");
      if (!structure_only_ && feeds_.contains(name) && op.type != "feed") {
        Report("output \"", name, "\" is a feed");
      }
    }
    if (complete && !structure_only_) CheckShapes(block, op, *def);
  }

  // Attributes that any op may have, and that no definition lists.
  void CheckMark(const Op& op, const char* name, AttrType expected) {
    const auto found = op.attrs.find(name);
    if (found == op.attrs.end() || TypeOf(found->second) == expected) return;
    Report("attribute \"", name, "\" is of type ", AttrTypeName(TypeOf(found->second)),
           ", expected ", AttrTypeName(expected));
  }

  void CheckShapes(const Block& block, const Op& op, const OpDef& def) {
    const auto metas = [&](const std::vector<std::string>& names) {
      std::vector<TensorMeta> result;
      for (const std::string& name : names) {
        result.push_back(name == kEmptyVarName ? TensorMeta{} : MetaOf(*block.FindVar(name)));
      }
      return result;
    };
    const std::vector<std::string> names = OutputOrder(def, op);
    OpContext context(op, def, metas(InputOrder(def, op)), metas(names));
    try {
      def.infer(context);
    } catch (const Error& error) {
      Report(error.what());
      return;
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kEmptyVarName) continue;
      const Var* var = block.FindVar(names[i]);
      const TensorMeta& meta = context.outputs()[i];
      if (var->dtype != meta.dtype || !DimsAgree(var->dims, meta.shape.dims())) {
        Report("output \"", names[i], "\" is declared as ", var->dtype, " ", Shape(var->dims),
               ", but the op makes ", meta.dtype, " ", meta.shape);
      }
    }
  }

  void VisitSubBlocks(const Op& op, const Names& written) {
    const std::string where = where_;
    for (int32_t index : op.SubBlocks()) {
      if (index < 0 || static_cast<size_t>(index) >= program_.block_count()) {
        Report("sub-block ", index, " is outside [0, ", program_.block_count() - 1, "]");
      } else if (std::ranges::count(path_, index) > 0) {
        Report("sub-block ", index, " contains the op itself");
      } else if (path_.size() >= kMaxDepth) {
        Report("sub-block ", index, " is nested deeper than ", kMaxDepth, " blocks");
      } else if (!visited_.contains(index)) {
        VisitBlock(*program_.block(index), written);
      }
      where_ = where;
    }
  }

  template <typename... Args>
  void Report(const Args&... args) {
    messages_.push_back(StrCat(where_, ": ", args...));
  }

  const OpRegistry& registry_;
  const Program& program_;
  const bool structure_only_;
  Names feeds_;
  std::vector<int32_t> path_;  // indices of the blocks that are being visited
  // Once is enough even for a block that several ops name: a program that does so again and again
  // must not take exponential time.
  std::unordered_set<int32_t> visited_;
  std::unordered_set<const Var*> without_shape_;
  std::string where_;
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> VerifyProgram(const OpRegistry& registry, const Program& program,
                                       const VerifyOptions& options) {
  return Verifier(registry, program, options).Run();
}

void CheckProgram(const OpRegistry& registry, const Program& program,
                  const VerifyOptions& options) {
  const std::vector<std::string> messages = VerifyProgram(registry, program, options);
  SKIFF_ENFORCE(messages.empty(), kInvalidArgument, Join(messages, "\n"));
}

}  // namespace skiff
