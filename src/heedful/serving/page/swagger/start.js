// No validator badge: the page asks this server and no other.
SwaggerUIBundle({ url: "spec", dom_id: "#api", deepLinking: true, validatorUrl: null });
