"""The paper's claims, each as an experiment of minutes: `heedful lab`."""
