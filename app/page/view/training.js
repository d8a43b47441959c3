/** @file Training by itself: after enough new answers, or when a person pauses. */

import { Refusal, get, isOver, modelOf, part, post } from "./api.js";
import { project } from "./project.js";
import { say, sentence, signal } from "./ui.js";

const ENOUGH = 20;
const FEW = 5;
const IDLE = 20_000;
/** What a job is that somebody has deleted. */
const GONE = { state: "cancelled" };

/** The trainer of one dataset: its job, the version that is served, and what it says of itself. */
export class Trainer {
  /** @param {string} dataset @param {string} model */
  constructor(dataset, model) {
    this.dataset = dataset;
    this.model = model;
    this.job = signal(/** @type {any} */ (null));
    this.version = signal(/** @type {any} */ (null));
    this.note = signal("");
    this.learned = -1;
    this.tried = -1;
    this.answered = performance.now();
    this.looking = false;
    this.onVersion = () => {};
  }

  /** Note that a person has answered. */
  touch() {
    this.answered = performance.now();
  }

  /** Look at the job and the model, and train if it is time. @param {number} sequence entries that are durable @param {number} labels answers with a label */
  async look(sequence, labels) {
    if (this.looking) return;
    this.looking = true;
    await this.#step(sequence, labels).finally(() => (this.looking = false));
  }

  /** @param {number} sequence @param {number} labels */
  async #step(sequence, labels) {
    await this.begin();
    if (this.job.value) return this.#follow();
    if (!this.#isTime(sequence, labels)) return;
    await this.#catchUp();
    if (this.job.value || !this.#isTime(sequence, labels)) return;
    this.tried = sequence;
    await this.train();
  }

  /** @param {number} sequence @param {number} labels */
  #isTime(sequence, labels) {
    // labels of the file count like answers as long as nothing was tried
    const fresh = this.version.value || this.tried >= 0 ? sequence - Math.max(this.learned, this.tried) : labels;
    const idle = performance.now() - this.answered > IDLE;
    return labels >= FEW && (fresh >= ENOUGH || (fresh >= FEW && idle));
  }

  /** Find out what others have had trained since, who label the same documents. */
  async #catchUp() {
    const before = this.version.value?.version;
    this.learned = -1;
    await this.begin();
    const { jobs } = await get("v1/jobs", { model: this.model });
    this.job.value = jobs.find((/** @type {any} */ each) => each.dataset === this.dataset && !isOver(each)) ?? null;
    this.learned = Math.max(this.learned, this.job.value?.annotations ?? 0);
    if (this.version.value?.version !== before) this.onVersion();
  }

  async train() {
    const body = { model: this.model, dataset: this.dataset, annotations: "latest" };
    try {
      const job = await post("v1/jobs", body);
      this.learned = job.annotations;
      this.job.value = job;
      this.note.value = "";
      say("Training has begun");
    } catch (error) {
      this.note.value = error instanceof Refusal && error.status === 422 ? `Not yet trained: ${error.message}` : String(/** @type {Error} */ (error).message);
      this.answered = performance.now();
    }
  }

  /** Find out what the model has learned before. */
  async begin() {
    if (this.learned >= 0) return;
    const model = await modelOf(this.model);
    const own = model?.versions.filter((/** @type {any} */ each) => each.dataset === this.dataset) ?? [];
    this.learned = Math.max(0, ...own.map((/** @type {any} */ each) => each.annotations ?? 0));
    this.version.value = model?.versions.find((/** @type {any} */ each) => each.version === model.served) ?? null;
  }

  async #follow() {
    const job = await get(`v1/jobs/${part(this.job.value.id)}`).catch((error) => (error.status === 404 ? GONE : Promise.reject(error)));
    if (!isOver(job)) return void (this.job.value = job);
    this.job.value = null;
    if (job.state !== "succeeded") {
      this.note.value = job.error?.detail ?? "The training was cancelled.";
      return;
    }
    const model = await get(`v1/models/${part(this.model)}`);
    this.version.value = model.versions.find((/** @type {any} */ each) => each.version === model.served);
    this.note.value = job.comparison?.takes_over === false ? sentence(job.comparison.why) : "";
    say(this.note.value || `Version ${job.model.version} is ready`);
    this.onVersion();
  }
}

/** @type {Map<string, Trainer>} */
const trainers = new Map();

/** The trainer of a dataset. @param {string} dataset */
export function trainerOf(dataset) {
  const model = project.value.model;
  const key = `${dataset} ${model}`;
  let found = trainers.get(key);
  if (!found) trainers.set(key, (found = new Trainer(dataset, model)));
  return found;
}
