// The description is next to the directory of this file. No validator badge: the page asks this server and no other.
const description = new URL("../spec", document.currentScript.src).href;
SwaggerUIBundle({ url: description, dom_id: "#api", deepLinking: true, validatorUrl: null });
