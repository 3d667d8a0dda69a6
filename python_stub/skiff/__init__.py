"""Skiff: programs of operators, built, differentiated, compiled and run.

    import skiff
    from skiff import layers

    main, startup = skiff.Program(), skiff.Program()
    with skiff.program_guard(main, startup):
        x = layers.data("x", [-1, 13])
        y = layers.data("y", [-1, 1])
        loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
        skiff.optimizer.Sgd(learning_rate=0.01).minimize(loss)

    exe = skiff.Executor()
    exe.run(startup)
    step = exe.compile(main)
    value, = step.run({"x": images, "y": prices}, [loss])
"""
from . import errors
from ._skiff import (
    ArrayReader, Auc, Block, BoundProgram, CompiledProgram, ConfusionMatrix, Epoch, EvaluationReport, Executor,
    GradientClip, GradientMerge, HalfReport, InferenceModel, Initializer, InstructionTime, IterableReader,
    LayerSummary, LoadedCheckpoint, LossScaling, MemoryOptions, Metric, Minimized, ModelSummary, Op, Optimizer,
    ParamAttr, ParameterAverage, ParameterGradient, PassReport, Perplexity, PlanStatistics, PrecisionOptions,
    Program, Reader, ReduceOnPlateau, Regularizer, SavedCheckpoint, Scope, ShardedReader, StepReport,
    StreamingMetric, Tensor, TopKAccuracy, Trainer, TrainingControl, TrainingResult, TrainingScope, Var, Variable, averaged,
    clip_by_global_norm, clip_by_norm, clip_by_value, default_main_program, default_startup_program, export_onnx,
    gradients, import_onnx, l1_decay, l2_decay, load_inference_model, load_latest_checkpoint, name_scope,
    plan_pass_names, program_guard, program_pass_names, read_npz, read_safetensors, read_safetensors_metadata,
    save_checkpoint, save_inference_model, weights_hash, write_npz, write_safetensors)
from .errors import (
    AlreadyExistsError, DataLossError, Error, FailedPreconditionError, InvalidArgumentError, IoError, NotFoundError,
    OutOfRangeError, ResourceExhaustedError, UnimplementedError)
from . import distributed, initializer, layers, learning_rate, optimizer

__version__ = "0.2.0"
