// The public C++ API for operators of your own. Register an OpDef and its kernels with
// DefaultOpRegistry() before you build programs. A LayerCall appends the op to a program; kernels
// use ParallelFor, which needs the compiler's -fopenmp.
#pragma once

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/builder/layer_call.h"
#include "framework/op/grad.h"
#include "framework/op/kernel.h"
#include "framework/op/op_context.h"
#include "framework/op/op_def.h"
#include "framework/op/registry.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"
#include "operators/common/input_checks.h"
