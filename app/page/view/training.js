/** @file Training by itself: after enough new answers, or when a person pauses. */

import { Refusal, get, isOver, modelOf, part, post } from "./api.js";
import { outboxOf } from "./outbox.js";
import { project } from "./project.js";
import { toast } from "./toasts.js";
import { treeOf } from "./tree.js";
import { say, sentence, signal, stopped } from "./ui.js";

const ENOUGH = 20;
const FEW = 5;
const IDLE = 20_000;
/** Seconds of a training beyond the first, half of which go to reading texts for their meaning. */
const SECONDS = 6;
/** Texts read for their meaning after which the rest waits for the next training that a person's answers bring. */
const READ_AT_ONCE = 4000;
/** The key of this person is not for trainings. */
const FORBIDDEN = 403;
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
    this.outbox = outboxOf(dataset);
    /** what the log of the dataset says, as of so many entries */
    this.summary = signal({ sequence: -1, changed: 0, labeled: 0, labels: /** @type {(string | number)[]} */ ([]) });
    this.meaning = signal(/** @type {{read: number, texts: number} | null} */ (null));
    /** the share of the only class that was labeled, as the served version estimates it */
    this.share = signal(/** @type {{share: number, low: number, high: number} | null} */ (null));
    this.learned = -1;
    this.tried = -1;
    this.failed = 0;
    this.looking = false;
    this.beginning = false;
    this.gone = false;
    /** what is known of the dataset */
    this.about = /** @type {any} */ (null);
    this.onVersion = () => {};
  }

  /** Look at the job and the model, and train if it is time. */
  async look() {
    if (this.looking || this.gone) return;
    this.looking = true;
    // what was deleted is asked for no more
    const stop = (/** @type {any} */ error) => void (this.gone = error.status === 404);
    await this.#step().catch(stop).finally(() => (this.looking = false));
  }

  async #step() {
    await this.begin();
    if (this.summary.value.sequence < this.outbox.sequence.value || this.summary.value.sequence < 0) this.summary.value = await get(`v1/datasets/${part(this.dataset)}/annotations/summary`);
    if (this.job.value) return this.#follow();
    if (!this.#isTime()) return;
    await this.#catchUp();
    if (this.job.value || !this.#isTime()) return;
    this.tried = this.summary.value.sequence;
    await this.train();
  }

  /** Number of answers that no version has learned from, up to the last that changed a label; labels of the file count like answers as long as
   * nothing was tried. */
  get fresh() {
    const { changed, labeled } = this.summary.value;
    return this.version.value || this.tried >= 0 ? Math.max(0, changed - Math.max(this.learned, this.tried)) : labeled;
  }

  /** Whether another version would have learned from anything else than the last one. */
  get canTrain() {
    const { changed, labeled } = this.summary.value;
    return (labeled >= 2 || this.votes) && !this.job.value && (!this.version.value || changed > this.learned);
  }

  #isTime() {
    if (this.votes && !this.version.value && this.tried < 0) return true;
    const idle = performance.now() - Math.max(this.outbox.answered, this.failed) > IDLE;
    return this.summary.value.labeled >= FEW && (this.fresh >= ENOUGH || (this.fresh >= FEW && idle));
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

  /** Whether there are votes, from which a model learns without any label. */
  get votes() {
    return Object.keys(this.about?.voters ?? {}).length > 0;
  }

  async train() {
    if (this.beginning) return; // a second click comes before the job is there
    // the first model comes from the words alone, at once; the meaning of the texts is read behind it
    const first = { encoder: null }, later = { options: { seconds: SECONDS } };
    const body = { model: this.model, dataset: this.dataset, annotations: "latest", nested: this.about?.label_kind === "single" && treeOf(this.summary.value.labels) !== null, ...(this.version.value ? later : first) };
    this.beginning = true;
    try {
      const job = await post("v1/jobs", body);
      this.learned = job.annotations;
      this.job.value = job;
      this.note.value = "";
      say("Training has begun");
    } catch (error) {
      const { status, message } = /** @type {Refusal} */ (error);
      this.note.value = status === FORBIDDEN ? "Your key may not train. Ask who runs the service." : status === 422 ? `Not yet trained: ${message}` : message;
      this.failed = performance.now();
    } finally {
      this.beginning = false;
    }
  }

  /** Find out what the model has learned before. */
  async begin() {
    this.about ??= await get(`v1/datasets/${part(this.dataset)}`);
    if (this.learned >= 0) return;
    const model = await modelOf(this.model);
    const own = model?.versions.filter((/** @type {any} */ each) => each.dataset === this.dataset) ?? [];
    this.learned = Math.max(0, ...own.map((/** @type {any} */ each) => each.annotations ?? 0));
    this.version.value = model?.versions.find((/** @type {any} */ each) => each.version === model.served) ?? null;
    const job = this.version.value && (await get(`v1/jobs/${part(this.version.value.job)}`).catch(() => null));
    this.meaning.value = job?.report?.encoder ?? null;
    this.share.value = job?.report?.share ?? null;
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
    this.note.value = job.comparison?.takes_over === false ? stopped(sentence(job.comparison.why)) : "";
    toast(this.note.value || `Version ${job.model.version} is ready`);
    this.onVersion();
    await this.#readOn(job);
  }

  /** Train again while texts are left to read for their meaning. @param {any} job the one that is over */
  async #readOn(job) {
    const before = this.meaning.value?.read ?? 0, now = job.report?.encoder ?? null;
    this.meaning.value = now;
    this.share.value = job.report?.share ?? null;
    const begins = !job.encoder && job.text && job.model.version === 1 && (await hasEncoder());
    if (begins || (now && now.read > before && now.read < Math.min(now.texts, READ_AT_ONCE))) await this.train();
  }
}

/** Whether the service reads texts for their meaning. */
async function hasEncoder() {
  const { encoders } = await get("v1/encoders");
  return encoders.some((/** @type {any} */ each) => each.default);
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
