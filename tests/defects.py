"""Seeded defects across all layers: each is one wrong line, with the test that must fail because of it.

`test_defects.py` applies them one at a time in the exhaustive suite. They show that a faster suite still catches what a
slower one did: a change to the suite may move a defect to another test but may not drop it. `python -m tests.defects`
prints the list.
"""

from __future__ import annotations

from typing import NamedTuple


class Defect(NamedTuple):
    """A correct line, the same line made wrong, and the test that notices."""

    name: str
    file: str
    right: str
    """Occurs exactly once in the file."""
    wrong: str
    test: str
    """Id of the test, below `tests/`."""
    interpreter: str = ""
    """Name of the interpreter on which the test fails, if it does not fail on the host."""


DEFECTS = (
    # --- interpreted engines -----------------------------------------------------------------------------------------
    Defect(
        "tuple: the partials of * are swapped",
        "engines/interpreted/tuple.py",
        "self.grad += other.data * out.grad",
        "self.grad += self.data * out.grad",
        "engines/test_every_op.py::test_the_reference_has_the_derivatives[*]",
    ),
    Defect(
        "hoisted: ReLU passes a gradient on at 0",
        "engines/interpreted/hoisted.py",
        "a.grad += (out.data > 0) * out.grad",
        "a.grad += (out.data >= 0) * out.grad",
        "engines/test_bits.py::test_engine_computes_the_reference_bits[ties-hoisted]",
    ),
    Defect(
        "local-grads: at a tie, max gives its gradient to the left operand",
        "engines/interpreted/local_grads.py",
        "out._receivers = (self,) if self.data > other.data else (other,)",
        "out._receivers = (self,) if self.data >= other.data else (other,)",
        "engines/test_bits.py::test_engine_computes_the_reference_bits[ties-local-grads]",
    ),
    Defect(
        "replay: the last step's gradients are not cleared",
        "engines/interpreted/trainer.py",
        "            v.grad = 0.0\n        graph.loss.grad = 1.0",
        "            pass\n        graph.loss.grad = 1.0",
        "harness/worker/test_workloads.py::test_training_equals_the_loop_written_by_hand[replay-xor]",
    ),
    Defect(
        "interpreted training: rows wrap around after more rows than there are",
        "engines/interpreted/trainer.py",
        'whole(rows, "rows", 1, there)',
        "rows",
        "harness/worker/test_workloads.py::test_restart_takes_as_many_rows_as_there_are[replay]",
    ),
    Defect(
        "interpreted training: the rate is divided by the batch first, which rounds differently",
        "engines/interpreted/trainer.py",
        "p.data -= rate * p.grad / batch",
        "p.data -= rate / batch * p.grad",
        "engines/handwritten/test_handwritten.py::test_it_trains_as_the_reference_does[handwritten-xor-stretches0-3]",
    ),
    Defect(
        "anatomy: the collector's pause also counts for the part that it interrupts",
        "harness/worker/profiling/anatomy.py",
        "seconds = perf_counter() - start - pauses",
        "seconds = perf_counter() - start",
        "harness/worker/test_profile.py::test_a_moment_belongs_to_one_part",
    ),
    Defect(
        "prefix: a first row gets a term of a row that the shorter graph lacks",
        "engines/rerolled/recover/prefix.py",
        "                if operand < rows:\n                    return False",
        "                if operand < rows:\n                    continue",
        "engines/rerolled/test_prefix.py::test_tapes_that_do_not_begin_another",
    ),
    Defect(
        "claims: gc_collect_main is compared with the whole collector group",
        "reports/profiling/claims.py",
        "    return sum(shares) if shares[0] >= LEAST else None",
        "    return profile.groups.get(COLLECTOR, 0.0) if shares[0] >= LEAST else None",
        "reports/test_claims.py::test_a_claim_on_profiles",
    ),
    Defect(
        "powers: PyPy's own x ** 2, which is x * x",
        "engines/value_base.py",
        'power = _libm_power if sys.implementation.name == "pypy" else operator.pow',
        "power = operator.pow",
        "engines/test_bits.py::test_squares_are_libm_pow[tuple]",
        "pypy",
    ),
    Defect(
        "nn: a neuron draws its bias before its weights",
        "engines/nn.py",
        "        new = self.Value\n",
        "        new = self.Value\n        self.b = new(rng.uniform(-1, 1) if random_bias else 0)\n",
        "engines/test_nn.py",
    ),
    Defect(
        "nn: a bound class is pickled by a name that nothing has",
        "engines/nn.py",
        "        return super().__reduce_ex__(protocol) if bound is None else (_blank, bound, self.__dict__)",
        "        return super().__reduce_ex__(protocol)",
        "engines/test_nn.py::test_a_trained_model_can_be_pickled_and_copied",
    ),
    Defect(
        "native: an overflow of NumPy's numbers raises no warning",
        "engines/native/number.h",
        "    *hard |= is_numpy && !isfinite(d);\n",
        "    (void)hard;\n",
        "engines/native/test_numpy_numbers.py",
    ),
    Defect(
        "notebook: errors name the line in the cell, not that in the file",
        "harness/worker/programs/notebook.py",
        "ast.increment_lineno(cell if python",
        "(lambda tree, _: tree)(cell if python",
        "harness/worker/test_notebook.py::test_errors_name_the_line_of_the_file",
    ),
    Defect(
        "probe: gradients are not compared",
        "harness/worker/programs/probe.py",
        "for part in (look.data, look.grad) for v in values",
        "for part in (look.data, look.data) for v in values",
        "harness/worker/test_replaced.py::test_a_class_that_differs_runs_as_it_is_and_the_line_says_why",
    ),
    Defect(
        "dress: the derivatives that an operation passes to the constructor are lost",
        "engines/native/dress.py",
        "            v._backward = functools.partial(_send, v, look)\n",
        "",
        "harness/worker/test_replaced.py::test_a_class_is_replaced_and_the_program_prints_the_same",
    ),
    Defect(
        "native: a Value with attributes of the program's own can't be found by the garbage collector",
        "engines/native/attributes.c",
        "    if (((Value *)self)->attributes != NULL)\n        track((Value *)self);\n",
        "",
        "engines/native/test_value_in_c.py::test_attributes_of_the_programs_own",
    ),
    # --- the graph and the tape -------------------------------------------------------------------------------------
    Defect(
        "op table: the partials of * are swapped",
        "engines/graph/ops.py",
        "(B * G, A * G)",
        "(A * G, B * G)",
        "engines/compiled/test_ops.py::test_gradients_by_finite_differences",
    ),
    Defect(
        "op table: the other operand of max gets 0 * g instead of nothing",
        "engines/graph/ops.py",
        "(where(A > B, G, 0.0), where(A > B, 0.0, G))",
        "(where(A > B, G, 0.0), (1.0 - (A > B)) * G)",
        "engines/compiled/test_differential.py::test_a_program_keeps_the_reference_bits[bytecode-infinite_gradient]",
    ),
    Defect(
        "linearize: an operand that is reached twice gets a second row",
        "engines/graph/linearize.py",
        "        v._row = row\n",
        "",
        "engines/graph/test_tape.py",
    ),
    Defect(
        "fold: a constant that is not finite is folded",
        "engines/graph/passes/fold.py",
        "return value if math.isfinite(value) else None",
        "return value",
        "engines/graph/test_fold.py",
    ),
    Defect(
        "tape checker: an operand may be its own row",
        "engines/graph/check.py",
        "not NONE <= left < row or not NONE <= right < row",
        "not NONE <= left <= row or not NONE <= right <= row",
        "engines/graph/test_tape.py",
    ),
    # --- straight-line code -----------------------------------------------------------------------------------------
    Defect(
        "lower: a second contribution replaces the first",
        "engines/straight/lower.py",
        "                if earlier is not None:",
        "                if False:",
        "engines/compiled/test_differential.py::test_a_program_keeps_the_reference_bits[tcc-diamond]",
    ),
    Defect(
        "lower: a parameter that is the loss gets another 1 in each step of a batch",
        "engines/straight/pieces.py",
        'lines.append(language.store % (f"{GRADIENTS}[{instruction[1]}]", "1.0"))',
        'lines.append(accumulate % (instruction[1], "1.0"))',
        "engines/compiled/test_program.py::test_a_parameter_as_the_loss[tcc-alone]",
    ),
    Defect(
        "bytecode: runs are in discovery order, not sorted",
        "engines/straight/bytecode.py",
        "in sorted(grouped.items())",
        "in grouped.items()",
        "engines/compiled/test_differential.py::test_all_programs_side_by_side_keep_the_reference_bits[bytecode-parameter]",
    ),
    Defect(
        "C: training does not wrap around",
        "engines/kernel/training.h",
        "    if (++t->row == t->stretch->rows)\n        t->row = 0;\n",
        "    t->row++;\n",
        "engines/compiled/test_differential.py::test_a_network_trains_as_by_hand[tcc-1]",
    ),
    Defect(
        "C: a workload that does not learn trains",
        "engines/kernel/train.c",
        "#define NEXT (s->learns ? turn(&t) : evaluate(&t))",
        "#define NEXT turn(&t)",
        "engines/compiled/test_frozen.py::test_a_workload_that_does_not_learn_runs_forward_passes_only[tcc]",
    ),
    Defect(
        "frozen: the weights are those of the caller's buffer, not of the C",
        "engines/kernel/train.c",
        "        .p = (double *)WEIGHTS,",
        "        .p = b->p,",
        "engines/compiled/test_frozen.py::test_the_weights_are_those_of_the_c[rerolled-tcc+frozen]",
    ),
    Defect(
        "C: bytes are multiplied by the divisor's reciprocal",
        "engines/kernel/set_input.c",
        "[at + i] / c->divisor;",
        "[at + i] * (1.0 / c->divisor);",
        "engines/compiled/test_program.py",
    ),
    Defect(
        "published: the backward pass walks the rows forward",
        "engines/straight/published.py",
        "for row in range(tape.loss, -1, -1):",
        "for row in range(tape.loss + 1):",
        "engines/compiled/test_differential.py::test_a_network_trains_as_by_hand[tcc-published-1]",
    ),
    Defect(
        "published: gradients are not cleared after an update",
        "engines/straight/published.c",
        "            grad[parameter_rows[i]] = 0.0;",
        "            grad[parameter_rows[i]] += 0.0;",
        "engines/compiled/test_differential.py::test_a_network_trains_as_by_hand[tcc-published-3]",
    ),
    Defect(
        "flags: the optimiser may contract a * b + c",
        "engines/kernel/toolchains.py",
        'STRICT = ("-std=c99", "-ffp-contract=off", "-fno-builtin")',
        'STRICT = ("-std=c99", "-ffp-contract=fast", "-fno-builtin")',
        "engines/compiled/test_differential.py::test_a_network_trains_as_by_hand[rerolled-gcc-1]",
    ),
    Defect(
        "compilers: 9 is newer than 19",
        "engines/kernel/toolchains.py",
        'key=lambda tool: [int(part) for part in tool.version.split(".")]',
        "key=lambda tool: tool.version",
        "engines/compiled/test_toolchains.py::test_the_newest_compiler_is_taken",
    ),
    Defect(
        "compilers: the whole environment is inherited",
        "engines/asking.py",
        "for name in INHERITED if name in os.environ}",
        "for name in os.environ}",
        "engines/compiled/test_toolchains.py::test_a_header_on_cpath_is_not_included",
    ),
    Defect(
        "compilers: the answer of a replaced program is used",
        "engines/answers.py",
        "(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)",
        "(facts.st_dev,)",
        "engines/compiled/test_answers.py::test_a_changed_program_is_asked_again",
    ),
    Defect(
        "compilers: the answer of a script is remembered",
        "engines/answers.py",
        "if not is_code or not family",
        "if not family",
        "engines/compiled/test_answers.py::test_scripts_and_disguised_links_are_asked_every_time",
    ),
    Defect(
        "kept objects: the bytes are not compared with their hash",
        "engines/files.py",
        'if digest.decode("latin-1") != hashlib.sha256(content).hexdigest():',
        "if not digest:",
        "engines/test_files.py::test_a_file_that_cannot_be_trusted_is_removed[flipped at 71]",
    ),
    Defect(
        "kept objects: an object does not depend on the processor",
        "engines/compile.py",
        "[platform.machine(), *flags, *sorted(toolchains.macros(tool, flags))]",
        "[platform.machine(), *flags]",
        "engines/compiled/test_objects.py::test_a_recipe_covers_everything_that_determines_an_object",
    ),
    Defect(
        "kept objects: a folder that others may write to is accepted",
        "engines/files.py",
        "if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):",
        "if facts.st_uid != os.getuid():",
        "engines/test_files.py::test_a_folder_that_others_may_write_is_refused[504]",
    ),
    Defect(
        "discovery: an engine file that exits during its import ends the harness",
        "engines/discovery.py",
        "        return load(name)\n    except (Exception, SystemExit) as error:",
        "        return load(name)\n    except Exception as error:",
        "engines/test_discovery.py::test_a_broken_file_is_left_out_and_named",
    ),
    Defect(
        "digest: a run resumes with another engine in the same file",
        "harness/machine/project.py",
        "for top in (PACKAGE, *discovery.sources()):",
        "for top in (PACKAGE,):",
        "harness/test_outside.py::test_workers_use_the_files_and_a_run_resumes_only_with_them",
    ),
    Defect(
        "extension module: a buffer may be too short by one",
        "engines/kernel/python_arguments.c",
        "else if (view->len / (Py_ssize_t)sizeof(double) < wanted->length)",
        "else if (view->len / (Py_ssize_t)sizeof(double) + 1 < wanted->length)",
        "engines/compiled/test_extension.py",
    ),
    Defect(
        "cffi: PyPy hands out a copy of a buffer",
        "engines/kernel/library.py",
        'return self._ffi.from_buffer("double[]", buffer, True)',
        'return self._ffi.from_buffer("double[]", buffer)',
        "engines/compiled/test_program.py",
        "pypy",
    ),
    Defect(
        "cffi: a bound pass does not keep its library",
        "engines/kernel/library.py",
        "        call.library = self._lib\n",
        "",
        "engines/compiled/test_program.py::test_bound_passes_outlive_the_program[tcc]",
    ),
    Defect(
        "program: a partial batch is forgotten",
        "engines/kernel/program.py",
        "self._taken = (self._taken + done) % batch",
        "self._taken = done % batch",
        "harness/worker/test_workloads.py::test_a_partial_batch_persists_across_calls[tcc]",
    ),
    Defect(
        "cffi: zip(strict=True), which CPython 3.9 lacks",
        "engines/kernel/library.py",
        "zip(described, columns, alive)",
        "zip(described, columns, alive, strict=True)",
        "engines/compiled/test_program.py",
        "cpython-3.9",
    ),
    # --- recovered loops --------------------------------------------------------------------------------------------
    Defect(
        "chains: the terms of another sum are added to a sink one by one",
        "engines/rerolled/recover/chains.py",
        "    spliced[spliced] = sums.kind[sums.owner[spliced]] != SINK\n",
        "",
        "engines/rerolled/test_tempting.py::test_tempting_graphs_keep_the_reference_bits[rerolled-tcc-plain networks]",
    ),
    Defect(
        "groups: sums of one hash are not compared",
        "engines/rerolled/recover/groups.py",
        "if shapes.differ(leader).any():",
        "if False:",
        "engines/rerolled/test_tempting.py::test_tempting_graphs_keep_the_bits_if_all_hashes_collide[vectors]",
    ),
    Defect(
        "groups: a network loses its loops because of irregular sums beside it",
        "engines/rerolled/recover/groups.py",
        "if self.are_many and 2 * (self.regular + sum(self._left)) < self._total:",
        "if self.are_many:",
        "engines/rerolled/test_irregular.py::test_a_network_beside_irregular_sums_keeps_its_loops",
    ),
    Defect(
        "groups: a chain of single values counts as rounds of one loop",
        "engines/rerolled/recover/groups.py",
        "len(sums) == 1 or kind not in self._near",
        "kind not in self._near",
        "engines/rerolled/test_irregular.py::test_a_chain_of_single_values_is_straight_lines",
    ),
    Defect(
        "rerolled: an irregular tape keeps a loop for each row",
        "engines/rerolled/reroll.py",
        "max(MANY, len(tape) // ROWS)",
        "len(tape)",
        "engines/rerolled/test_irregular.py::test_irregular_tapes_are_straight_lines[rerolled-tcc]",
    ),
    Defect(
        "rerolled C: each constant is stored by a statement",
        "engines/rerolled/emit/c.py",
        '[For("i", len(loops.numbers), copy)])',
        '[Assign(f"w[K + {i}]", f"(number)numbers[{i}]") for i in range(len(loops.numbers))])',
        "engines/rerolled/test_c.py::test_constants_do_not_add_statements",
    ),
    Defect(
        "pairs: vectors may reach into the next row of weights",
        "engines/rerolled/rearrange/weight_reuse.py",
        "                and sink.room >= loop.room",
        "                and sink.room >= 0",
        "engines/rerolled/test_traps.py::test_no_pair_where_vectors_would_reach_into_the_next_row",
    ),
    Defect(
        "rows together: the last row before a non-finite loss is lost",
        "engines/rerolled/emit/c_section.py",
        "return [Assign(COUNT, row)]",
        'return [Assign(COUNT, f"{row} > 0 ? {row} - 1 : 0")]',
        "engines/rerolled/test_traps.py::test_a_loss_that_is_not_finite_leaves_what_was_there[vectors-two layers-3]",
    ),
    Defect(
        "step: a parameter that is the loss gets another 1 in each step of a batch",
        "engines/rerolled/step/plain.py",
        "(ClearSeeded(),) if loops.has_parameter_as_loss else ()",
        "()",
        "engines/compiled/test_program.py::test_a_parameter_as_the_loss[rerolled-numpy-alone]",
    ),
    Defect(
        "step: a deferred update is not settled before weights are measured",
        "engines/rerolled/rearrange/deferred.py",
        "lambda s: (settle, s) if isinstance(s, MeasureWeights) else (s,)",
        "lambda s: (s,)",
        "engines/rerolled/test_step.py",
    ),
    Defect(
        "step: outputs are written before the inputs of their row are restored",
        "engines/rerolled/rearrange/together.py",
        "Guard((KeepEarlier(), *last, inputs, *gives))",
        "Guard((KeepEarlier(), *last, *gives, inputs))",
        "engines/rerolled/test_traps.py",
    ),
    Defect(
        "step: the nonzero inputs of a row are not listed",
        "engines/rerolled/rearrange/zeros.py",
        "If(Unbounded(), (MeasureWeights(),)), ListInputs())",
        "If(Unbounded(), (MeasureWeights(),)))",
        "engines/rerolled/test_step.py",
    ),
    Defect(
        "zeros: terms are skipped although a weight may be infinite",
        "engines/rerolled/emit/zeros.h",
        "const int skips = t->state.bound < LIMIT;",
        "const int skips = 1;",
        "engines/rerolled/test_skipping.py",
    ),
    Defect(
        "NumPy: a sum loses its value so far when terms are added row by row",
        "engines/rerolled/emit/numpy_runs.py",
        "rows[0] = 0.0 if total is None else np.broadcast_to(total, loop.counts).reshape(-1)",
        "rows[0] = 0.0",
        "engines/rerolled/test_tempting.py::test_tempting_graphs_keep_the_reference_bits[rerolled-numpy-networks]",
    ),
    Defect(
        "merged loops: a number does not change from round to round",
        "engines/rerolled/merged/table.py",
        "return base + n * step",
        "return base + 0 * step",
        "engines/rerolled/test_merged.py::test_how_a_number_varies",
    ),
    Defect(
        "merged loops: the C of a number that a list has for each round takes the first one",
        "engines/rerolled/merged/table.py",
        'f" + {name(self.listed)}[{ROUND}]"',
        'f" + {name(self.listed)}[0]"',
        "engines/rerolled/test_merged.py::test_c_has_the_bits_of_each_graph[tcc-form0-40]",
    ),
    Defect(
        "merged loops: kinds that only another graph has replace those of the pattern",
        "engines/rerolled/merged/align.py",
        "        found += pattern[start:stop]\n        if pattern[start:stop] != kinds[first:last]:\n",
        "        if pattern[start:stop] == kinds[first:last]:\n"
        "            found += pattern[start:stop]\n"
        "        else:\n",
        "engines/rerolled/test_merged.py::test_every_graph_finds_its_loops_in_order",
    ),
    Defect(
        "merged loops: the loss of every graph is where the first graph has it",
        "engines/rerolled/merged/merge.py",
        "Number(places[0], table.column(places))",
        "Number(places[0], places[0])",
        "engines/rerolled/test_merged.py::test_c_has_the_bits_of_each_graph[tcc-form0-40]",
    ),
    Defect(
        "merged C: gaps between parameters keep what whole vectors wrote there",
        "engines/rerolled/emit/merged.c",
        "q[gaps[i]] = 0.0;",
        "(void)q;",
        "engines/rerolled/test_merged.py::test_c_has_the_bits_of_each_graph[gcc-form1-6]",
    ),
    Defect(
        "rerolled C: shared expressions are in set order",
        "engines/rerolled/emit/c_nest.py",
        "for text in dict.fromkeys(leaves))",
        "for text in set(leaves))",
        "engines/test_everywhere.py::test_generated_texts_are_the_same_under_any_hash_seed",
    ),
    # --- handwritten C ---------------------------------------------------------------------------------------------
    Defect(
        "handwritten: zero inputs are skipped although a gradient may be infinite",
        "engines/handwritten/mlp.c",
        "if (!(steepest < SAFE && speed < SAFE))",
        "if (!(speed < SAFE))",
        "engines/handwritten/test_handwritten.py::test_an_infinite_gradient_meets_an_input_of_zero",
    ),
    # --- data -------------------------------------------------------------------------------------------------------
    Defect(
        "IDX: a label may be one too large",
        "datasets/idx.py",
        "if max(labels) >= classes:",
        "if max(labels) > classes:",
        "datasets/test_idx.py",
    ),
    Defect(
        "MNIST: cached files are not verified",
        "datasets/mnist.py",
        "sources = [_source(locate(file), file.sha256) for file in split]",
        "sources = [_source(locate(file)) for file in split]",
        "datasets/test_mnist.py::test_a_flipped_byte_in_the_cache_is_refused",
    ),
    # --- the harness ------------------------------------------------------------------------------------------------
    Defect(
        "proof: differences in the last bits are ignored",
        "harness/worker/evidence.py",
        "if x == y or (x != x and y != y):",
        "if abs(x - y) < 1e-12 or (x != x and y != y):",
        "harness/worker/test_proof.py::test_the_last_bit_counts",
    ),
    Defect(
        "proof: the clock stops before the results are read",
        "harness/worker/measure.py",
        "        read = left_by(self._trainer)\n        seconds = perf_counter() - restarted\n",
        "        seconds = perf_counter() - restarted\n        read = left_by(self._trainer)\n",
        "harness/test_measure.py::test_no_work_is_outside_the_clock[Deferring]",
    ),
    Defect(
        "proof: timed stretches repeat the start of the warm-ups",
        "harness/worker/measure.py",
        "[0] * runner.args.warmups * passes, proof.starts(stretch.steps))",
        "itertools.repeat(0))",
        "harness/test_isolate.py::test_an_engine_that_replays_a_stretch_fails",
    ),
    Defect(
        "records: a proof of fewer steps than were timed counts",
        "results/record.py",
        "if self.proof.steps != self.stretch_steps or self.proof.stretches < timed:",
        "if self.proof.stretches < timed:",
        "results/test_record.py",
    ),
    Defect(
        "records: a cell without a proof has a time",
        "results/record.py",
        "if self.proof is None:",
        "if self.proof == ():",
        "results/test_record.py::test_a_contradiction_is_refused",
    ),
    Defect(
        "isolation: a process that left the worker's session outlives the worker",
        "harness/containment/running.py",
        "    descendants.end_orphans(known)\n",
        "",
        "harness/test_isolate.py::test_a_process_that_leaves_the_session_ends_with_the_worker[session]",
    ),
    Defect(
        "isolation: a worker does not ask to be killed with its parent",
        "harness/worker/lifeline.py",
        'if sys.platform == "linux":\n        import ctypes',
        'if sys.platform == "win32":\n        import ctypes',
        "harness/test_isolate.py::test_no_worker_outlives_a_harness_that_is_killed",
    ),
    Defect(
        "fleet: a client that was killed loses the rest of a block",
        "harness/fleet/home.py",
        "            self._unpack(read(path, Complete))",
        "            pass",
        "harness/fleet/test_fleet.py::test_a_client_killed_while_it_kept_a_block_loses_none_of_it",
    ),
    Defect(
        "fleet: a record that nobody asked for is kept",
        "harness/fleet/collecting.py",
        "if record.block != block or record.cell not in run.cells:",
        "if False:",
        "harness/fleet/test_fleet.py::test_a_record_that_nobody_asked_for_ends_the_run_with_the_remedy[another block]",
    ),
    Defect(
        "results: a record of an unknown host is hidden",
        "results/record.py",
        "if record.host and record.host not in self.hosts:",
        "if False:",
        "results/test_hosts.py::test_a_record_of_an_unknown_host_is_named",
    ),
    Defect(
        "lock: two runs share it",
        "harness/run/lock.py",
        "lock.acquire(timeout=0)",
        "lock.acquire(timeout=0) if False else None",
        "harness/test_lock.py::test_a_second_run_learns_who_holds_the_lock",
    ),
    Defect(
        "interpreters: 3.11.7 is newer than 3.11.10",
        "harness/machine/interpreters.py",
        "return _numbers(version)[:3], _is_release(version), version",
        "return version, _is_release(version), version",
        "harness/test_interpreters.py::test_names_of_interpreters",
    ),
    Defect(
        "command line: an empty name selects the default",
        "harness/cli/options.py",
        "if text is not None and not text.strip():",
        "if text and not text.strip():",
        "harness/test_cli.py::test_an_empty_name_is_refused_not_ignored",
    ),
    Defect(
        "command line: wrong usage exits like a failed check",
        "harness/cli/app.py",
        "WRONG_USE = 2",
        "WRONG_USE = 1",
        "harness/test_cli.py::test_a_usage_error_names_the_mistake_and_the_remedy[train xr-]",
    ),
    Defect(
        "store: the partial record of a killed process counts as a record",
        "results/files.py",
        'for path in sorted((root / part).glob("[!.]*.json"))',
        'for path in sorted((root / part).glob("*.json*"))',
        "results/test_store.py",
    ),
    # --- statistics, the gate and the report ------------------------------------------------------------------------
    Defect(
        "statistics: bounds one rank too narrow",
        "results/stats/intervals.py",
        "    return rank, (count - k) * beyond / (k + (count - 2 * k) * beyond)",
        "    return rank + 1, (count - k) * beyond / (k + (count - 2 * k) * beyond)",
        "results/test_stats.py",
    ),
    Defect(
        "compare: a cell is slower if its interval touches the limit",
        "results/compare.py",
        "    if ratio.low > 1 + tolerated:",
        "    if ratio.high > 1 + tolerated:",
        "results/test_compare.py",
    ),
    Defect(
        "compare: the clock of a process that waited for the processor counts",
        "harness/compare/turns.py",
        "        if self.base.is_busy and self.head.is_busy:",
        "        if False:",
        "harness/compare/test_turns.py",
    ),
    Defect(
        "gate: a bound in place of identical bits is no weaker",
        "reports/gate/rules.py",
        "        if facts is None or facts.strict:\n            return 0.0",
        "        if facts is None or facts.strict:\n            return math.inf",
        "reports/gate/test_rules.py",
    ),
    Defect(
        "gate: a compile time is compared as measured",
        "reports/gate/rules.py",
        "compiled_seconds(at_pace)",
        "compiled_seconds(records)",
        "reports/gate/test_rules.py",
    ),
    Defect(
        "table: rows without a result count as measured",
        "reports/measured/table.py",
        "measured(table: pd.DataFrame) -> pd.DataFrame:\n"
        '    """The rows that have a result."""\n'
        '    return table[table["status"] == MEASURED]',
        'measured(table: pd.DataFrame) -> pd.DataFrame:\n    """The rows that have a result."""\n    return table',
        "reports/measured/test_table.py",
    ),
)


if __name__ == "__main__":
    for defect in DEFECTS:
        print(f"{defect.name:<80} {defect.interpreter or 'host':<12} {defect.test}")
