#include "framework/executor/run/derived_forms.h"

#include <utility>

#include "framework/base/element_count.h"
#include "framework/executor/storage/storage.h"
#include "framework/tensor/shared_writes.h"

namespace skiff {

DerivedForms::DerivedForms(const Plan& plan, const Instruction& instruction,
                           std::vector<DerivedRequest> requests, Scope* scope,
                           KernelContext* context) {
  for (DerivedRequest& request : requests) {
    Form form;
    form.workspace = request.workspace;
    // A workspace shares the arena with other values, so its contents don't survive the
    // instruction. A form that is kept must have storage of its own.
    if (request.workspace >= 0) {
      form.data = context->workspace(request.workspace);
    } else if (request.is_of_loop) {
      form.loop_bytes = request.form.bytes;
    } else {
      form.storage = NewBlock(plan, instruction.place, request.form.bytes, MemoryTag::kDerivedForm);
      form.data = form.storage->data();
      for (const int input : request.form.inputs) {
        const ValueId value = instruction.inputs[static_cast<size_t>(input)];
        form.source_versions.push_back(scope->Version(plan[value].name));
      }
    }
    form.refresh = std::move(request.form.refresh);
    context->derived_forms.push_back(form.data);
    forms_.push_back(std::move(form));
  }
}

void DerivedForms::FollowWorkspaces(KernelContext* context) {
  for (size_t i = 0; i < forms_.size(); ++i) {
    Form& form = forms_[i];
    if (form.workspace < 0) continue;
    form.data = context->workspace(form.workspace);
    context->derived_forms[i] = form.data;
  }
}

int64_t DerivedForms::BytesOfLoop(const std::vector<DerivedRequest>& requests) {
  int64_t bytes = 0;
  for (const DerivedRequest& request : requests) {
    if (request.is_of_loop) bytes += RoundUp(request.form.bytes, kBufferAlignment);
  }
  return bytes;
}

void DerivedForms::PlaceInLoop(char* memory, KernelContext* context) {
  for (size_t i = 0; i < forms_.size(); ++i) {
    Form& form = forms_[i];
    if (form.loop_bytes == 0) continue;
    form.data = memory;
    form.is_made = false;
    context->derived_forms[i] = memory;
    memory += RoundUp(form.loop_bytes, kBufferAlignment);
  }
}

void DerivedForms::Refresh(const KernelContext& context) {
  const uint64_t shared_writes = SharedWrites();
  for (Form& form : forms_) {
    uint64_t version = 0;
    // Versions only grow, so their sum is equal only if each of them is.
    for (const uint64_t* source : form.source_versions) version += *source;
    const bool is_kept = form.workspace < 0 && form.is_made;
    if (is_kept && form.version == version && form.shared_writes == shared_writes) continue;
    form.refresh(context, form.data);
    form.is_made = true;
    form.version = version;
    form.shared_writes = shared_writes;
  }
}

int64_t DerivedForms::kept_bytes() const {
  int64_t bytes = 0;
  for (const Form& form : forms_) {
    if (form.storage != nullptr) bytes += form.storage->bytes();
  }
  return bytes;
}

}  // namespace skiff
