export type Child = any;
export function h(type: any, props: Record<string, any> | null, ...children: Child[]): Child;
export function render(child: Child, parent: Element): void;
