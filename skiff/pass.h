// The public C++ API for user code that looks into programs and plans, and for user-defined passes
// (PipelineOptions::program_passes, plan_passes). It has the definitions of types that skiff.h only
// names, such as ir::Block and ir::Plan, and brings the names into namespace skiff.
#pragma once

#include "framework/ir/program.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/transpiler/pass.h"
