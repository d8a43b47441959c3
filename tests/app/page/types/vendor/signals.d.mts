export interface Signal<T> {
  value: T;
}
export interface ReadonlySignal<T> {
  readonly value: T;
}
export function batch<T>(work: () => T): T;
export function computed<T>(work: () => T): ReadonlySignal<T>;
export function effect(work: () => void | (() => void)): () => void;
export function signal<T>(initial: T): Signal<T>;
export function useComputed<T>(work: () => T): ReadonlySignal<T>;
export function useSignal<T>(initial: T): Signal<T>;
