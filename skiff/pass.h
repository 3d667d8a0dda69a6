// The public C++ API for those who look into programs and plans, and for passes of your own
// (PipelineOptions::program_passes, plan_passes). It has the definitions of what skiff.h only
// names, such as ir::Block and ir::Plan, and brings their names into namespace skiff.
#pragma once

#include "framework/ir/program.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/transpiler/pass.h"
