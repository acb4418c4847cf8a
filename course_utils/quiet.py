"""Keep out of notebooks what libraries say when they are imported; to be imported before them.

`import course_utils` alone must cost nothing, so this does not stand there.
"""

import logging
import warnings

# Lightning's import asks notebooks without ipywidgets to install it, for progress bars that the course does not use.
warnings.filterwarnings("ignore", message="IProgress not found")
# What matplotlib says of its font cache (being built, or listing fonts that have moved) is the machine's own affair.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
