declare const htm: {
  bind<H>(h: H): (strings: TemplateStringsArray, ...values: any[]) => any;
};
export default htm;
